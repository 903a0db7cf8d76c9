/**
 * A tab that outlives an upgrade of the server. The app's own version is asked for when the tab is looked at again and
 * each time the live stream comes back; a newer one is offered, never forced, and not while somebody is typing. Only a
 * part of the app that is gone from the server reloads the page by itself, once.
 */
import { version } from '$app/env';
import { updated } from '$app/state';
import { m } from '#lib/paraglide/messages.js';
import { inTextField } from '#lib/shell/platform.ts';
import { toasts } from '#lib/ui/toasts.svelte.ts';

/** So long after the last letter somebody counts as typing. */
const TYPING_MS = 3_000;
const STORAGE_KEY = 'tale.reloaded';

let offered = false;
let typedAt = -Infinity;

/** Asks whether the server has a newer app, and offers it. */
export async function checkVersion(): Promise<void> {
	try {
		if (await updated.check()) offer();
	} catch {
		// The server is away; the next connection asks again.
	}
}

function offer(): void {
	if (offered) return;
	offered = true;
	whenQuiet(() =>
		toasts.show({
			kind: 'info',
			text: m.version_available(),
			detail: m.version_available_text(),
			lasting: true,
			action: { label: m.version_reload(), run: () => location.reload() },
			dismiss: m.version_later()
		})
	);
}

function whenQuiet(act: () => void): void {
	const wait = typedAt + TYPING_MS - performance.now();
	if (wait <= 0) act();
	else setTimeout(() => whenQuiet(act), wait);
}

/** Whether this page has reloaded itself before; notes that it does so now. */
function firstReload(): boolean {
	try {
		if (sessionStorage.getItem(STORAGE_KEY) === version) return false;
		sessionStorage.setItem(STORAGE_KEY, version);
		return true;
	} catch {
		return false;
	}
}

/** A part of the app could not be loaded. */
function partMissing(event: Event): void {
	const field = document.activeElement;
	const typing = field !== null && inTextField({ target: field } as unknown as Event);
	// Without a network there is nothing to reload from; the overlay says so.
	if (!navigator.onLine) return;
	if (typing || !firstReload()) return offer();
	event.preventDefault();
	location.reload();
}

/** Watches until the returned function is called. */
export function watchVersion(): () => void {
	const typed = () => (typedAt = performance.now());
	addEventListener('input', typed, { capture: true });
	addEventListener('vite:preloadError', partMissing);
	return () => {
		removeEventListener('input', typed, { capture: true });
		removeEventListener('vite:preloadError', partMissing);
	};
}

/** Offers a newer app that SvelteKit noticed; call it inside an effect. */
export function offerWhenUpdated(): void {
	if (updated.current) offer();
}
