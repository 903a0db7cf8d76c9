/** The audit log, and what is read beside it. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/svelte-query';
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import type { components } from '#lib/api/schema.ts';
import { queryClient } from '#lib/api/query-client.ts';
import { base } from '#lib/shell/paths.ts';

export type AuditEntry = components['schemas']['AuditLogEntry'];
type AuditPage = components['schemas']['AuditPage'];
export type AuditBreak = components['schemas']['AuditBreak'];
export type SignInBlock = components['schemas']['SignInBlock'];
export type AuditVerification = components['schemas']['AuditVerification'];

/** Which entries a tab shows. */
export interface AuditFilter {
	/** Empty for all. */
	category: string;
	/** Failed and denied ones only. */
	unsuccessful: boolean;
}

const parameters = ({ category, unsuccessful }: AuditFilter) => ({
	...(category ? { category } : {}),
	...(unsuccessful ? { unsuccessful } : {})
});

export const entriesQuery = (orgId: string, filter: AuditFilter) =>
	infiniteQueryOptions({
		queryKey: keys.org(orgId, 'audit', filter),
		queryFn: ({ pageParam, signal }): Promise<AuditPage> =>
			send(
				api.GET('/api/app/audit', {
					params: { query: { orgId, ...parameters(filter), ...(pageParam ? { cursor: pageParam } : {}) } },
					signal
				})
			),
		initialPageParam: '',
		getNextPageParam: (last: AuditPage) => (last.isDone ? undefined : last.continueCursor)
	});

export const statusQuery = (orgId: string) =>
	queryOptions({
		queryKey: keys.org(orgId, 'audit', 'status'),
		queryFn: ({ signal }) => send(api.GET('/api/app/audit/status', { params: { query: { orgId } }, signal }))
	});

export const blocksQuery = (orgId: string) =>
	queryOptions({
		queryKey: keys.org(orgId, 'audit', 'blocks'),
		queryFn: ({ signal }) => send(api.GET('/api/app/audit/sign-in-blocks', { params: { query: { orgId } }, signal }))
	});

/** Forgets the failures of a member of one kind, in every network. */
export async function clearBlocks(orgId: string, { userId, kind }: SignInBlock): Promise<void> {
	const params = { path: { userId }, query: { orgId, kind } };
	await send(api.DELETE('/api/app/members/{userId}/sign-in-blocks', { params }));
	await queryClient.invalidateQueries({ queryKey: blocksQuery(orgId).queryKey });
}

export const activityQuery = (orgId: string, days: number) =>
	queryOptions({
		queryKey: keys.org(orgId, 'audit', 'activity', days),
		queryFn: ({ signal }) => send(api.GET('/api/app/audit/activity', { params: { query: { orgId, days } }, signal }))
	});

/** Where the entries are had as a file. */
export const exportHref = (orgId: string, format: 'csv' | 'jsonl', filter: AuditFilter): string => {
	const query = new URLSearchParams({ orgId, format });
	for (const [name, value] of Object.entries(parameters(filter))) query.set(name, String(value));
	return `${base}/api/app/audit/export?${query}`;
};

/** Checks the next part of the chain, after the place `after`. */
export const verify = (orgId: string, after: number | undefined, signal: AbortSignal): Promise<AuditVerification> =>
	send(
		api.POST('/api/app/audit/verify', {
			params: { query: { orgId, ...(after === undefined ? {} : { after }) } },
			signal
		})
	);
