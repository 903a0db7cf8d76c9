/** The upload steps of this server: ask for a place, send the bytes to the store, bind them. */
import { api, send } from '#lib/api/client.ts';
import { toProblem } from '#lib/api/problem.ts';
import { formatNumber } from '#lib/i18n/format.ts';
import { problemText } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';
import { admitsStore } from '#lib/shell/site.ts';
import { extensionOf } from './kinds.ts';
import { putFile, TransferError, type Ticket } from './transfer.ts';
import { MAX_FILE_BYTES, type UploadDoors, type UploadFailure } from './uploads.svelte.ts';

/** Media types of files for which the operating system knows none. */
const BY_EXTENSION: Record<string, string> = {
	md: 'text/markdown',
	csv: 'text/csv',
	json: 'application/json',
	yaml: 'application/yaml',
	yml: 'application/yaml'
};

const TRANSFER_CODES = {
	network: 'UPLOAD_NETWORK',
	'unknown-store': 'UPLOAD_RELOAD',
	refused: 'UPLOAD_REFUSED',
	aborted: 'UPLOAD_REFUSED'
};

export function mediaTypeOf(file: File): string {
	return file.type || BY_EXTENSION[extensionOf(file.name)] || 'application/octet-stream';
}

export function uploadDoors<Result>(
	orgId: string,
	purpose: 'document' | 'chat',
	finish: (ticket: Ticket, file: File) => Promise<Result>
): UploadDoors<Result> {
	return {
		ticket: (file) =>
			send(
				api.POST('/api/app/uploads', {
					params: { query: { orgId } },
					body: { fileName: file.name, contentType: mediaTypeOf(file), size: file.size, purpose }
				})
			),
		put: (ticket, file, onProgress, signal) =>
			admitsStore(new URL(ticket.url).origin)
				? putFile(ticket, file, onProgress, signal)
				: Promise.reject(new TransferError('unknown-store')),
		finish,
		explain(cause): UploadFailure {
			if (cause instanceof TransferError) {
				return { code: cause.status === 507 ? 'UPLOAD_NO_SPACE' : TRANSFER_CODES[cause.reason] };
			}
			const problem = toProblem(cause);
			const { limitBytes } = problem.data;
			const message = limitBytes
				? m.documents_upload_over({ limit: limitText(Number(limitBytes), 1) })
				: problem.code === 'UPLOAD_POLICY_REJECTED'
					? m.documents_upload_unsupported()
					: problemText(problem);
			return { code: problem.code, message, requestId: problem.requestId ?? undefined };
		}
	};
}

/** A limit of the upload doors as people know it: 104,857,600 bytes are "100 MB". */
export function limitText(bytes: number, digits = 0): string {
	return formatNumber(bytes / 1_048_576, {
		style: 'unit',
		unit: 'megabyte',
		unitDisplay: 'short',
		maximumFractionDigits: digits
	});
}

/** Why an upload of a file of `size` bytes failed, in one sentence. */
export function uploadFailureText(failure: UploadFailure, size: number): string {
	switch (failure.code) {
		case 'FILE_TOO_LARGE':
			return m.documents_upload_too_large({ size: limitText(size + 524_287), limit: limitText(MAX_FILE_BYTES) });
		case 'UPLOAD_NETWORK':
			return m.documents_upload_network();
		case 'UPLOAD_RELOAD':
			return m.documents_upload_reload();
		case 'UPLOAD_REFUSED':
			return m.documents_upload_refused();
		case 'UPLOAD_NO_SPACE':
			return m.documents_upload_full();
		case 'UNSUPPORTED_FILE_TYPE':
			return m.documents_upload_unsupported();
		case 'OBJECT_STORE_UNCONFIGURED':
			return m.documents_upload_no_store();
		case 'BLOB_NOT_FOUND':
			return m.documents_upload_lost();
		default:
			return failure.message ?? m.documents_upload_refused();
	}
}
