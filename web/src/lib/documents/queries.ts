/** What the documents pages read. Keys start with the topic that hints name. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/svelte-query';
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { DocumentPage, IndexingStatus } from './types.ts';

const PAGE = 100;
/** Characters of extracted text read at once. */
export const TEXT_WINDOW = 20_000;

export interface DocumentFilter {
	search: string;
	/** An indexing status, or empty for all. */
	status: string;
}

export const documentsQuery = (orgId: string, filter: DocumentFilter) =>
	infiniteQueryOptions({
		queryKey: keys.org(orgId, 'documents', filter),
		queryFn: ({ pageParam, signal }): Promise<DocumentPage> =>
			send(
				api.GET('/api/app/documents', {
					params: {
						query: {
							orgId,
							limit: PAGE,
							...(filter.search ? { search: filter.search } : {}),
							...(filter.status ? { status: filter.status as IndexingStatus } : {}),
							...(pageParam ? { cursor: pageParam } : {})
						}
					},
					signal
				})
			),
		initialPageParam: '',
		getNextPageParam: (last: DocumentPage) => (last.isDone ? undefined : (last.continueCursor ?? undefined))
	});

export const documentQuery = (orgId: string, id: string) =>
	queryOptions({
		queryKey: keys.org(orgId, 'document', id),
		queryFn: ({ signal }) =>
			send(api.GET('/api/app/documents/{id}', { params: { path: { id }, query: { orgId } }, signal }))
	});

export const passageQuery = (orgId: string, id: string, chunkId: string) =>
	queryOptions({
		queryKey: keys.org(orgId, 'document', id, 'passage', chunkId),
		queryFn: ({ signal }) =>
			send(
				api.GET('/api/app/documents/{id}/passages/{chunkId}', {
					params: { path: { id, chunkId }, query: { orgId } },
					signal
				})
			)
	});

/** One window of a document's extracted text, from the cache when it was read before. */
export function readText(orgId: string, id: string, offset: number, limit = TEXT_WINDOW) {
	return queryClient.fetchQuery({
		queryKey: keys.org(orgId, 'document', id, 'text', offset, limit),
		queryFn: ({ signal }) =>
			send(
				api.GET('/api/app/documents/{id}/text', { params: { path: { id }, query: { orgId, offset, limit } }, signal })
			)
	});
}

export function rereadDocuments(orgId: string): void {
	void queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'documents') });
	void queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'composer') });
}

/** Where a document's bytes are; `download` makes the browser save them. */
export function contentUrl(orgId: string, id: string, download = false): string {
	return `/api/app/documents/${encodeURIComponent(id)}/content?orgId=${encodeURIComponent(orgId)}${download ? '&download=1' : ''}`;
}
