/** What the documents pages read. Keys start with the topic that hints name. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/svelte-query';
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import { base } from '#lib/shell/paths.ts';
import { extensionOf } from './kinds.ts';
import type { About, DocumentPage, ExtractedText, IndexingStatus, Passage, Readable } from './types.ts';

const PAGE = 100;
/** Characters of extracted text read at once. */
export const TEXT_WINDOW = 20_000;

export interface DocumentFilter {
	search: string;
	/** An indexing status, or empty for all. */
	status: string;
	sort: DocumentSort;
	order: 'asc' | 'desc';
}

/** What the list can be ordered by. */
export type DocumentSort = 'added' | 'name' | 'size';

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
							sort: filter.sort,
							order: filter.order,
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

export const documentKey = (orgId: string, id: string) => keys.org(orgId, 'document', id);

export const aboutQuery = (orgId: string, { kind, id }: Readable) =>
	queryOptions({
		queryKey: keys.org(orgId, kind, id, 'about'),
		queryFn: async ({ signal }): Promise<About> => {
			const query = { orgId };
			if (kind === 'file') {
				const path = { fileId: id };
				const file = await send(api.GET('/api/app/chat/attachments/{fileId}', { params: { path, query }, signal }));
				return { title: file.name, fileName: file.name, extension: extensionOf(file.name), errorCode: null };
			}
			const document = await send(api.GET('/api/app/documents/{id}', { params: { path: { id }, query }, signal }));
			const { title, fileName, extension, indexing } = document;
			return { title, fileName, extension: extension || extensionOf(fileName), errorCode: indexing.errorCode ?? null };
		}
	});

export const passageQuery = (orgId: string, { kind, id }: Readable, chunkId: string) =>
	queryOptions({
		queryKey: keys.org(orgId, kind, id, 'passage', chunkId),
		queryFn: ({ signal }): Promise<Passage> => {
			const query = { orgId };
			return kind === 'file'
				? send(
						api.GET('/api/app/files/{fileId}/passages/{chunkId}', {
							params: { path: { fileId: id, chunkId }, query },
							signal
						})
					)
				: send(
						api.GET('/api/app/documents/{id}/passages/{chunkId}', { params: { path: { id, chunkId }, query }, signal })
					);
		}
	});

/** One window of an extracted text, from the cache when it was read before. */
export function readText(orgId: string, { kind, id }: Readable, offset: number, limit = TEXT_WINDOW) {
	return queryClient.fetchQuery({
		queryKey: keys.org(orgId, kind, id, 'text', offset, limit),
		queryFn: ({ signal }): Promise<ExtractedText> => {
			const query = { orgId, offset, limit };
			return kind === 'file'
				? send(api.GET('/api/app/files/{fileId}/text', { params: { path: { fileId: id }, query }, signal }))
				: send(api.GET('/api/app/documents/{id}/text', { params: { path: { id }, query }, signal }));
		}
	});
}

export function rereadDocuments(orgId: string): void {
	void queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'documents') });
	void queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'composer') });
}

/** Where the bytes are; `download` makes the browser save them. */
export function contentUrl(orgId: string, { kind, id }: Readable, download = false): string {
	return `${base}/api/app/${kind}s/${encodeURIComponent(id)}/content?orgId=${encodeURIComponent(orgId)}${download ? '&download=1' : ''}`;
}
