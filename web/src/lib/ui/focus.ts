/**
 * Moves the keyboard's focus to `to` after what `from` did took `from` away; not when the person has gone elsewhere
 * meanwhile.
 */
export function handFocus(from: Element, to: HTMLElement | null | undefined): void {
	const at = document.activeElement;
	if (!at || at === document.body || at === from) to?.focus({ preventScroll: true });
}
