/** How far the visitor's limits are used, as a chat needs to know it. */
import { createQuery } from '@tanstack/svelte-query';
import { untrack } from 'svelte';
import { budgetQuery } from './queries.ts';

/** Read anew after every answer, which uses something, and after every refused send, which says that nothing is left. */
export function watchBudget(orgId: string, busy: () => boolean) {
	const budget = createQuery(() => budgetQuery(orgId));
	let before = false;
	$effect(() => {
		const now = busy();
		if (before && !now) untrack(() => void budget.refetch());
		before = now;
	});
	return budget;
}
