/** What was used, and how far one's limits are used. */
import { keepPreviousData, queryOptions } from '@tanstack/svelte-query';
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { base } from '#lib/shell/paths.ts';
import type { GroupBy, UsageFilter } from './types.ts';

const DAY = 86_400_000;

/** A day in UTC as the server names it. */
export const utcDay = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** The first day of the last `days` days, today included. */
export const firstDay = (days: number, now = Date.now()): string => utcDay(now - (days - 1) * DAY);

const parameters = (orgId: string, days: number, groupBy: GroupBy, filter: UsageFilter) => ({
	orgId,
	from: firstDay(days),
	to: utcDay(Date.now()),
	groupBy,
	...(filter ? { [filter.by]: filter.key } : {})
});

export const usageQuery = (orgId: string, days: number, groupBy: GroupBy, filter: UsageFilter) =>
	queryOptions({
		queryKey: keys.org(orgId, 'usage', days, groupBy, filter?.by ?? null, filter?.key ?? null),
		queryFn: ({ signal }) =>
			send(api.GET('/api/app/usage', { params: { query: parameters(orgId, days, groupBy, filter) }, signal })),
		placeholderData: keepPreviousData
	});

/** Where the same is had as a table for spreadsheets. */
export const exportHref = (orgId: string, days: number, groupBy: GroupBy, filter: UsageFilter): string =>
	`${base}/api/app/usage/export?${new URLSearchParams(parameters(orgId, days, groupBy, filter))}`;

export const budgetQuery = (orgId: string) =>
	queryOptions({
		queryKey: keys.org(orgId, 'budget'),
		queryFn: ({ signal }) =>
			send(api.GET('/api/app/governance/my/budget-status', { params: { query: { orgId } }, signal })),
		// A limit that is reached may be raised.
		refetchInterval: ({ state }) => (state.data?.status.exceeded ? 60_000 : false)
	});
