/** What can be done to a document. Failures are reported as toasts; a delete can be undone from its toast. */
import { api, send } from '#lib/api/client.ts';
import { toProblem } from '#lib/api/problem.ts';
import { queryClient } from '#lib/api/query-client.ts';
import { m } from '#lib/paraglide/messages.js';
import { toasts } from '#lib/ui/toasts.svelte.ts';
import { documentKey, rereadDocuments } from './queries.ts';
import type { Document } from './types.ts';

const at = (orgId: string, id: string) => ({ params: { path: { id }, query: { orgId } } });

/** Throws, so that the dialog can show why not. */
export async function renameDocument(orgId: string, id: string, title: string): Promise<void> {
	await send(api.PATCH('/api/app/documents/{id}', { ...at(orgId, id), body: { title } }));
	void queryClient.invalidateQueries({ queryKey: documentKey(orgId, id) });
	rereadDocuments(orgId);
}

/** Throws, so that the dialog that asked can show why not. */
export async function deleteDocument(orgId: string, document: Document): Promise<void> {
	await removeDocument(orgId, document.id);
	rereadDocuments(orgId);
	toasts.success(m.documents_deleted({ title: document.title }), {
		label: m.documents_undo(),
		run: () => void restore(orgId, document.id)
	});
}

/** Moves a document to the trash and says nothing. */
export async function removeDocument(orgId: string, id: string): Promise<void> {
	await send(api.DELETE('/api/app/documents/{id}', at(orgId, id)));
}

/** Brings a document back and says nothing. */
export async function restoreDocument(orgId: string, id: string): Promise<void> {
	await send(api.POST('/api/app/documents/{id}/restore', at(orgId, id)));
	void queryClient.invalidateQueries({ queryKey: documentKey(orgId, id) });
}

async function restore(orgId: string, id: string): Promise<void> {
	try {
		await restoreDocument(orgId, id);
		rereadDocuments(orgId);
	} catch (error) {
		toasts.problem(m.documents_restore_failed(), toProblem(error));
	}
}

/** Queues a document for indexing again and says nothing. */
export async function restartIndexing(orgId: string, id: string) {
	const answer = await send(api.POST('/api/app/documents/{id}/retry-indexing', at(orgId, id)));
	void queryClient.invalidateQueries({ queryKey: documentKey(orgId, id) });
	return answer;
}

export async function retryIndexing(orgId: string, document: Document): Promise<void> {
	try {
		const { status, reason } = await restartIndexing(orgId, document.id);
		if (status === 'skipped') {
			toasts.show({
				kind: 'info',
				text: m.documents_retry_skipped({ title: document.title }),
				detail: reason === 'in-progress' ? m.documents_retry_in_progress() : m.documents_retry_useless()
			});
		}
		rereadDocuments(orgId);
	} catch (error) {
		toasts.problem(m.documents_retry_failed(), toProblem(error));
	}
}
