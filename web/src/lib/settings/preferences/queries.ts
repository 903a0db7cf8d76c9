/** A person's preferences in an organization; theme and language take effect at once in this browser. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { toProblem } from '#lib/api/problem.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { Preferences } from '#lib/api/types.ts';
import { locale } from '#lib/i18n/locale.svelte.ts';
import { m } from '#lib/paraglide/messages.js';
import { theme } from '#lib/shell/theme.svelte.ts';
import { toasts } from '#lib/ui/toasts.svelte.ts';

export const preferencesQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'preferences'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<Preferences> =>
		send(api.GET('/api/app/preferences', { params: { query: { orgId } }, signal }))
});

/**
 * Shows what was chosen on another device. An account without a language gets the one it is read in, so that mail comes
 * in it as well.
 */
export function applyPreferences(orgId: string, preferences: Preferences): void {
	if (preferences.theme !== theme.current) theme.set(preferences.theme);
	if (!preferences.locale) savePreferences(orgId, { locale: locale.current }).catch(() => {});
	else if (preferences.locale !== locale.current) locale.set(preferences.locale);
}

/** Saves go one after another: each sends the whole object and must not undo the one before. */
let saving: Promise<unknown> = Promise.resolve();

/** Saves some of the preferences; the server takes the whole object, so the rest is read first. */
export function savePreferences(orgId: string, change: Partial<Preferences>): Promise<Preferences> {
	const save = saving.then(async () => {
		const query = preferencesQuery(orgId);
		const body = { ...(await queryClient.ensureQueryData(query)), ...change };
		// Sent to its end even when the page is reloaded meanwhile.
		const request = { params: { query: { orgId } }, body, keepalive: true };
		const next = await send(api.PUT('/api/app/preferences', request));
		queryClient.setQueryData(query.queryKey, next ?? body);
		return next ?? body;
	});
	saving = save.catch(() => undefined);
	return save;
}

/** Applies a theme or language at once and saves it behind the scenes. */
export async function choosePreference(
	orgId: string,
	change: Pick<Partial<Preferences>, 'theme' | 'locale'>
): Promise<void> {
	if (change.theme) theme.set(change.theme);
	if (change.locale) locale.set(change.locale);
	try {
		await savePreferences(orgId, change);
	} catch (error) {
		toasts.problem(m.preferences_not_saved(), toProblem(error));
	}
}
