/** The keys of the Home list: arrows between rows once one has the focus, Alt and arrows from anywhere. */
import { goto } from '$app/navigation';
import { inTextField } from '#lib/shell/platform.ts';

/** Arrow keys, Home and End move between the rows of one list. */
export function listKeys(node: HTMLElement): () => void {
	const keydown = (event: KeyboardEvent) => {
		const rows = [...node.querySelectorAll<HTMLElement>('[data-row]')];
		const at = rows.indexOf(document.activeElement as HTMLElement);
		if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
		const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
		if (next === undefined) return;
		event.preventDefault();
		rows[Math.min(rows.length - 1, Math.max(0, next))]?.focus();
	};
	node.addEventListener('keydown', keydown);
	return () => node.removeEventListener('keydown', keydown);
}

/** Where Alt+↓ (`1`) or Alt+↑ (`-1`) leads from the open item; nothing at either end. */
export function neighbour(ids: readonly string[], open: string | null, step: 1 | -1): string | null {
	if (ids.length === 0) return null;
	const at = open === null ? -1 : ids.indexOf(open);
	if (at < 0) return (step === 1 ? ids[0] : ids.at(-1)) ?? null;
	return ids[at + step] ?? null;
}

/** Follows Alt and arrows on the whole page. In a text field they mean text; the empty field of a new chat has none. */
export function moveKeys(
	event: KeyboardEvent,
	ids: readonly string[],
	open: string | null,
	href: (id: string) => string
): void {
	if (!event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
	if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
	if (inTextField(event) && (open !== null || (event.target as HTMLInputElement).value !== '')) return;
	// What floats above the page has the keys to itself.
	if ((event.target as Element).closest('dialog, [popover]')) return;
	const next = neighbour(ids, open, event.key === 'ArrowDown' ? 1 : -1);
	event.preventDefault();
	if (next) void goto(href(next), { reset: false });
}
