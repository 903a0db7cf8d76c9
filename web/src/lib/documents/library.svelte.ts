/** The uploads to an organization's library: one queue per organization, alive on every page. */
import { api, send } from '#lib/api/client.ts';
import { uploadDoors } from './doors.ts';
import { rereadDocuments } from './queries.ts';
import type { Document } from './types.ts';
import { UploadQueue } from './uploads.svelte.ts';

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- a registry; what is reactive is in its values
const queues = new Map<string, UploadQueue<Document>>();

export function libraryUploads(orgId: string): UploadQueue<Document> {
	let queue = queues.get(orgId);
	if (!queue) {
		queue = new UploadQueue(
			uploadDoors(orgId, 'document', async (ticket) => {
				const made = await send(
					api.POST('/api/app/documents', { params: { query: { orgId } }, body: { fileId: ticket.fileId } })
				);
				rereadDocuments(orgId);
				return made;
			})
		);
		queues.set(orgId, queue);
	}
	return queue;
}
