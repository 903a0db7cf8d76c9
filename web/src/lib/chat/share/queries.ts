/** What sharing reads and does. */
import { queryOptions } from '@tanstack/svelte-query';
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { toProblem } from '#lib/api/problem.ts';
import { queryClient } from '#lib/api/query-client.ts';
import { describeProblems } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';
import { toasts } from '#lib/ui/toasts.svelte.ts';
import { rereadThreads, threadKey } from '../queries.ts';
import type { Share } from '../types.ts';

describeProblems({ CHAT_NOTHING_TO_SHARE: m.share_nothing, SHARE_NOT_FOUND: m.shared_unavailable });

const at = (orgId: string, id: string) => ({ params: { path: { id }, query: { orgId } } });

/** Whether a chat is shared. What was known before is not good enough to say so: every look asks the server. */
export const shareQuery = (orgId: string, threadId: string) =>
	queryOptions({
		queryKey: [...threadKey(orgId, threadId), 'share'],
		queryFn: async ({ signal }): Promise<Share | null> =>
			(await send(api.GET('/api/app/chat/threads/{id}/share-status', { ...at(orgId, threadId), signal }))).share,
		staleTime: 0,
		gcTime: 0
	});

/** A chat that somebody shared. */
export const sharedQuery = (orgId: string, token: string) =>
	queryOptions({
		queryKey: keys.org(orgId, 'shared', token),
		queryFn: ({ signal }) =>
			send(api.GET('/api/app/chat/shared/{token}', { params: { path: { token }, query: { orgId } }, signal }))
	});

function changed(orgId: string, threadId: string, share: Share | null): void {
	queryClient.setQueryData(shareQuery(orgId, threadId).queryKey, share);
	void queryClient.invalidateQueries({ queryKey: threadKey(orgId, threadId), exact: true });
	rereadThreads(orgId);
}

/** Publishes the version on screen; with `includeNewer` behind the link that there is. Throws what went wrong. */
export async function publish(orgId: string, threadId: string, includeNewer = false): Promise<void> {
	const share = await send(
		api.POST('/api/app/chat/threads/{id}/share', { ...at(orgId, threadId), body: { includeNewer } })
	);
	changed(orgId, threadId, share);
}

/** Ends the link. Throws what went wrong. */
export async function unshare(orgId: string, threadId: string): Promise<void> {
	await send(api.POST('/api/app/chat/threads/{id}/unshare', at(orgId, threadId)));
	changed(orgId, threadId, null);
}

/** Ends the link from a menu, where nothing else reports how that went. */
export async function stopSharing(orgId: string, threadId: string): Promise<void> {
	try {
		await unshare(orgId, threadId);
		toasts.success(m.share_stopped());
	} catch (error) {
		toasts.problem(m.share_stop_failed(), toProblem(error));
	}
}
