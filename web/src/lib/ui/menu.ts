import type { Icon } from './Icon.ts';

/** One entry of a `Menu`. */
export type MenuEntry =
	| {
			label: string;
			icon?: Icon;
			/** Quiet text at the end: a shortcut or a value. */
			detail?: string;
			danger?: boolean;
			disabled?: boolean;
			/** A tick marks the current choice. */
			checked?: boolean;
			href?: string;
			/** Opens in a new tab. */
			external?: boolean;
			onselect?: () => void;
	  }
	| { heading: string }
	| 'separator';
