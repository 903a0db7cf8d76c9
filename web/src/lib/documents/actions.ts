/** What can be done to a document. Failures are reported as toasts; a delete can be undone from its toast. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { toProblem } from '#lib/api/problem.ts';
import { queryClient } from '#lib/api/query-client.ts';
import { m } from '#lib/paraglide/messages.js';
import { toasts } from '#lib/ui/toasts.svelte.ts';
import { documentQuery, rereadDocuments } from './queries.ts';
import type { Document } from './types.ts';

const at = (orgId: string, id: string) => ({ params: { path: { id }, query: { orgId } } });

/** Throws, so that the dialog can show why not. */
export async function renameDocument(orgId: string, id: string, title: string): Promise<void> {
	const renamed = await send(api.PATCH('/api/app/documents/{id}', { ...at(orgId, id), body: { title } }));
	if (renamed) queryClient.setQueryData(documentQuery(orgId, id).queryKey, renamed);
	rereadDocuments(orgId);
}

/** Throws, so that the dialog that asked can show why not. */
export async function deleteDocument(orgId: string, document: Document): Promise<void> {
	await send(api.DELETE('/api/app/documents/{id}', at(orgId, document.id)));
	rereadDocuments(orgId);
	toasts.success(m.documents_deleted({ title: document.title }), {
		label: m.documents_undo(),
		run: () => void restoreDocument(orgId, document.id)
	});
}

async function restoreDocument(orgId: string, id: string): Promise<void> {
	try {
		await send(api.POST('/api/app/documents/{id}/restore', at(orgId, id)));
		void queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'document', id) });
		rereadDocuments(orgId);
	} catch (error) {
		toasts.problem(m.documents_restore_failed(), toProblem(error));
	}
}

export async function retryIndexing(orgId: string, document: Document): Promise<void> {
	try {
		const { status, reason } = await send(api.POST('/api/app/documents/{id}/retry-indexing', at(orgId, document.id)));
		if (status === 'skipped') {
			toasts.show({
				kind: 'info',
				text: m.documents_retry_skipped({ title: document.title }),
				detail: reason === 'in-progress' ? m.documents_retry_in_progress() : m.documents_retry_useless()
			});
		}
		void queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'document', document.id) });
		rereadDocuments(orgId);
	} catch (error) {
		toasts.problem(m.documents_retry_failed(), toProblem(error));
	}
}
