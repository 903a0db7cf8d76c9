/** Warnings that the visitor has put away: each for its limit and its period, as long as the page is open. */
import { SvelteSet } from 'svelte/reactivity';
import type { Limit } from './types.ts';

const away = new SvelteSet<string>();
const nameOf = ({ code, scope, period, resetsAt }: Limit) => `${scope} ${code} ${period} ${resetsAt}`;

export const putAway = {
	has: (limit: Limit): boolean => away.has(nameOf(limit)),
	add: (limit: Limit): void => void away.add(nameOf(limit))
};
