/** Whether shortcuts are written with ⌘ and ⌥ or with Ctrl and Alt. */
export const isMac = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.platform);

/** The printed form of a shortcut: `keysOf('K')` is `⌘K` or `Ctrl+K`. */
export function keysOf(key: string, { alt = false } = {}): string {
	if (isMac) return `${alt ? '⌥' : ''}⌘${key}`;
	return `${alt ? 'Alt+' : ''}Ctrl+${key}`;
}

/** Whether an event comes from a field in which keys mean text. */
export function inTextField(event: Event): boolean {
	const target = event.target;
	return (
		target instanceof HTMLElement &&
		(target.isContentEditable || target.matches('textarea, select, input:not([type="checkbox"], [type="radio"])'))
	);
}
