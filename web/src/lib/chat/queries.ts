/** What chat reads from the server. Keys start with the topic that hints name, so a hint re-reads exactly these. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/svelte-query';
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { ThreadPage } from '#lib/api/types.ts';
import type { Message, Parked, Thread } from './types.ts';

/** Rows read at once in the Home list. */
const PAGE = 40;

export const composerQuery = (orgId: string) =>
	queryOptions({
		queryKey: keys.org(orgId, 'composer'),
		queryFn: ({ signal }) => send(api.GET('/api/app/chat/composer', { params: { query: { orgId } }, signal }))
	});

export const threadsQuery = (orgId: string, archived: boolean) =>
	infiniteQueryOptions({
		queryKey: keys.org(orgId, 'threads', archived ? 'archived' : 'active'),
		queryFn: ({ pageParam, signal }): Promise<ThreadPage> =>
			send(
				api.GET('/api/app/chat/threads', {
					params: { query: { orgId, archived, limit: PAGE, ...(pageParam ? { cursor: pageParam } : {}) } },
					signal
				})
			),
		initialPageParam: '',
		getNextPageParam: (last: ThreadPage) => (last.isDone ? undefined : (last.continueCursor ?? undefined))
	});

export const threadKey = (orgId: string, id: string) => keys.org(orgId, 'thread', id);
const messagesKey = (orgId: string, id: string) => keys.org(orgId, 'thread', id, 'messages');

export const threadQuery = (orgId: string, id: string) =>
	queryOptions({
		queryKey: threadKey(orgId, id),
		queryFn: ({ signal }) =>
			send(api.GET('/api/app/chat/threads/{id}', { params: { path: { id }, query: { orgId } }, signal }))
	});

export const messagesQuery = (orgId: string, id: string) =>
	queryOptions({
		queryKey: messagesKey(orgId, id),
		queryFn: async ({ signal }): Promise<Message[]> => {
			const { messages } = await send(
				api.GET('/api/app/chat/threads/{id}/messages', { params: { path: { id }, query: { orgId } }, signal })
			);
			return messages;
		}
	});

/** The messages of a chat that wait for their files, in the order in which they will go. */
export const parkedQuery = (orgId: string, id: string) =>
	queryOptions({
		queryKey: keys.org(orgId, 'thread', id, 'parked'),
		queryFn: async ({ signal }): Promise<Parked[]> => {
			const { sends } = await send(
				api.GET('/api/app/chat/threads/{id}/deferred-sends', { params: { path: { id }, query: { orgId } }, signal })
			);
			return sends;
		}
	});

/** Reads the messages of a chat again now, whatever is cached. */
export function rereadMessages(orgId: string, id: string): Promise<Message[]> {
	return queryClient.fetchQuery({ ...messagesQuery(orgId, id), staleTime: 0 });
}

/** Marks the lists stale after a change of ours; the server's hint does the same for every other tab. */
export function rereadThreads(orgId: string): void {
	void queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'threads') });
}

/** The row of a chat as the lists know it, so that a chat opens with its title before its own read is back. */
export function knownThread(orgId: string, id: string): Thread | undefined {
	for (const [, data] of queryClient.getQueriesData<{ pages: ThreadPage[] }>({
		queryKey: keys.org(orgId, 'threads')
	})) {
		const found = data?.pages.flatMap((page) => page.page).find((thread) => thread.id === id);
		if (found) return found;
	}
	return undefined;
}
