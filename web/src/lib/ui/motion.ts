/** Movement that scripts make; what CSS moves follows the tokens in `tokens.css`. */
import { prefersReducedMotion } from 'svelte/motion';
import { cubicOut } from 'svelte/easing';
import type { TransitionConfig } from 'svelte/transition';

const DROP_MS = 200;
/** How far it drops, as a share of its height. */
const DROP = 1 / 6;

/** A row that came into a list while it was on screen drops into place. */
export function dropIn(row: Element): TransitionConfig {
	const height = row.clientHeight * DROP;
	return {
		duration: prefersReducedMotion.current ? 0 : DROP_MS,
		easing: cubicOut,
		css: (t, u) => `opacity: ${t}; translate: 0 ${u * -height}px`
	};
}
