/** The keys that work in the app, as the list of shortcuts names them. `keysOf` and this list are their only spellings. */
import { m } from '#lib/paraglide/messages.js';
import { isMac, keysOf } from './platform.ts';

export interface Shortcut {
	label: () => string;
	/** Alternatives, each a chord of keys. */
	keys: readonly (readonly string[])[];
}

export interface ShortcutGroup {
	title: () => string;
	list: readonly Shortcut[];
}

/** The keys of a chord, as printed. */
const chord = (text: string): string[] => (isMac ? [...text] : text.split('+'));
const alt = isMac ? '⌥' : 'Alt';

export const SHORTCUTS: readonly ShortcutGroup[] = [
	{
		title: m.shortcuts_everywhere,
		list: [
			{ label: m.chat_new, keys: [chord(keysOf('N', { alt: true }))] },
			{ label: m.ui_search, keys: [chord(keysOf('K'))] },
			{ label: m.shortcuts_close, keys: [['Esc']] }
		]
	},
	{
		title: m.home_chats,
		list: [
			{ label: m.shortcuts_fold, keys: [chord(keysOf('\\'))] },
			{ label: m.shortcuts_next_chat, keys: [[alt, '↓']] },
			{ label: m.shortcuts_previous_chat, keys: [[alt, '↑']] },
			{ label: m.shortcuts_rows, keys: [['↑'], ['↓'], ['Home'], ['End']] },
			{ label: m.chat_send, keys: [['Enter']] },
			{ label: m.shortcuts_line_break, keys: [['Shift', 'Enter']] }
		]
	},
	{
		title: m.documents_title,
		list: [
			{ label: m.shortcuts_tick, keys: [['Space']] },
			{ label: m.shortcuts_tick_range, keys: [['Shift', 'Space']] },
			{
				label: m.shortcuts_tick_along,
				keys: [
					['Shift', '↓'],
					['Shift', '↑']
				]
			}
		]
	}
];
