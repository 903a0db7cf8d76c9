/** Sends bytes straight to the object store over a presigned address, with progress. */

/** Where and how one file goes: the answer of `POST /api/app/uploads`. */
export interface Ticket {
	fileId: string;
	url: string;
	method: string;
	headers: Record<string, string>;
}

/**
 * Why a transfer ended early. `aborted` is ours; `network` had no answer; `refused` carries the store's status;
 * `unknown-store`: this page was loaded before the organization's files went to that store.
 */
type TransferFailure = 'aborted' | 'network' | 'refused' | 'unknown-store';

export class TransferError extends Error {
	readonly reason: TransferFailure;
	readonly status: number;

	constructor(reason: TransferFailure, status = 0) {
		super(reason);
		this.reason = reason;
		this.status = status;
	}
}

/** The browser reports upload progress on `XMLHttpRequest` only; `fetch` cannot. */
export function putFile(
	ticket: Ticket,
	file: Blob,
	onProgress: (sentBytes: number) => void,
	signal: AbortSignal
): Promise<void> {
	return new Promise((resolve, reject) => {
		if (signal.aborted) return reject(new TransferError('aborted'));
		const request = new XMLHttpRequest();
		request.open(ticket.method, ticket.url);
		for (const [name, value] of Object.entries(ticket.headers)) {
			// The browser sets these itself and refuses ours.
			if (!/^(?:host|content-length)$/i.test(name)) request.setRequestHeader(name, value);
		}
		request.upload.onprogress = (event) => onProgress(event.loaded);
		request.onload = () => {
			if (request.status >= 200 && request.status < 300) resolve();
			else reject(new TransferError('refused', request.status));
		};
		request.onerror = () => reject(new TransferError('network'));
		request.onabort = () => reject(new TransferError('aborted'));
		signal.addEventListener('abort', () => request.abort(), { once: true });
		request.send(file);
	});
}
