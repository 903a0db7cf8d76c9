/**
 * Uploads of the tab: a queue that sends four files at a time and survives every change of route,
 * because it belongs to the organization and not to a page.
 *
 * A file is *waiting*, then *sending* (with progress), then *finishing* (bound to what it was uploaded
 * for), then *done*; it can fail or be cancelled on the way, and a failed one can be tried again.
 */
import { TransferError, type Ticket } from './transfer';

/** The largest file that any door accepts, in bytes. People know it as 100 MB. */
export const MAX_FILE_BYTES = 104_857_600;

/** Transfers at the same time. */
const PARALLEL = 4;

export type UploadPhase = 'waiting' | 'sending' | 'finishing' | 'done' | 'failed' | 'cancelled';

/** Why an upload failed: a problem code of the server, or one of ours. */
export type UploadFailure = { code: string; message?: string | undefined; requestId?: string | undefined };

/** The steps that talk to the server; tests give their own. */
export interface UploadDoors<Result> {
	/** Asks for a place to put the bytes. */
	ticket(file: File): Promise<Ticket>;
	put(ticket: Ticket, file: File, onProgress: (sent: number) => void, signal: AbortSignal): Promise<void>;
	/** Binds the stored bytes to what they are for. */
	finish(ticket: Ticket, file: File): Promise<Result>;
	/** Turns whatever was thrown into a failure to show. */
	explain(cause: unknown): UploadFailure;
}

export class Upload<Result> {
	readonly id: string;
	readonly file: File;
	phase: UploadPhase = $state('waiting');
	/** Bytes sent so far. */
	sent: number = $state(0);
	failure: UploadFailure | null = $state(null);
	result: Result | null = $state.raw(null);
	/** The stored file, once its bytes have arrived: a retry does not send them again. */
	ticket: Ticket | null = null;
	stored = false;
	abort: AbortController | null = null;

	constructor(id: string, file: File) {
		this.id = id;
		this.file = file;
	}

	get active(): boolean {
		return this.phase === 'waiting' || this.phase === 'sending' || this.phase === 'finishing';
	}

	/** Sent share, 0 to 1. */
	get share(): number {
		if (this.phase === 'done' || this.phase === 'finishing') return 1;
		return this.file.size === 0 ? 0 : Math.min(1, this.sent / this.file.size);
	}
}

export class UploadQueue<Result> {
	items: Upload<Result>[] = $state([]);
	readonly #doors: UploadDoors<Result>;
	readonly #clock: () => number;
	#next = 0;
	/** Progress samples of the last seconds, for the speed. */
	#samples: { at: number; bytes: number }[] = [];
	/** Bytes per second over the last seconds; 0 while unknown. */
	speed: number = $state(0);

	constructor(doors: UploadDoors<Result>, clock: () => number = () => performance.now()) {
		this.#doors = doors;
		this.#clock = clock;
	}

	/** Puts files in the queue. Those over the limit fail at once, without a request. */
	add(files: Iterable<File>): Upload<Result>[] {
		const added: Upload<Result>[] = [];
		for (const file of files) {
			const upload = new Upload<Result>(`upload-${this.#next++}`, file);
			if (file.size > MAX_FILE_BYTES) {
				upload.phase = 'failed';
				upload.failure = { code: 'FILE_TOO_LARGE' };
			}
			added.push(upload);
		}
		this.items.push(...added);
		this.#pump();
		return added;
	}

	cancel(id: string): void {
		const upload = this.items.find((item) => item.id === id);
		if (!upload?.active) return;
		upload.phase = 'cancelled';
		upload.abort?.abort();
		this.#pump();
	}

	cancelAll(): void {
		for (const upload of this.items) this.cancel(upload.id);
	}

	retry(id: string): void {
		const upload = this.items.find((item) => item.id === id);
		if (!upload || (upload.phase !== 'failed' && upload.phase !== 'cancelled')) return;
		if (upload.file.size > MAX_FILE_BYTES) return;
		upload.failure = null;
		upload.sent = 0;
		upload.phase = 'waiting';
		this.#pump();
	}

	/** Takes an upload off the list; a running one is cancelled. */
	remove(id: string): void {
		this.cancel(id);
		this.items = this.items.filter((item) => item.id !== id);
	}

	/** Clears everything that is over. */
	clearFinished(): void {
		this.items = this.items.filter((item) => item.active);
	}

	get active(): number {
		return this.items.filter((item) => item.active).length;
	}

	/** Bytes of the files that were not cancelled or refused: sent and in all. */
	get totals(): { sent: number; size: number } {
		let sent = 0;
		let size = 0;
		for (const item of this.items) {
			if (!item.active && item.phase !== 'done') continue;
			size += item.file.size;
			sent += item.share * item.file.size;
		}
		return { sent, size };
	}

	/** Seconds left at the present speed, or nothing while that is unknown. */
	get secondsLeft(): number | null {
		const { sent, size } = this.totals;
		return this.speed > 0 && this.active > 0 ? Math.ceil((size - sent) / this.speed) : null;
	}

	#pump(): void {
		let running = this.items.filter((item) => item.phase === 'sending' || item.phase === 'finishing').length;
		for (const item of this.items) {
			if (running >= PARALLEL) return;
			if (item.phase !== 'waiting') continue;
			running++;
			void this.#run(item);
		}
	}

	async #run(upload: Upload<Result>): Promise<void> {
		upload.phase = 'sending';
		const abort = new AbortController();
		upload.abort = abort;
		try {
			if (!upload.stored) {
				const ticket = await this.#doors.ticket(upload.file);
				if (abort.signal.aborted) return;
				upload.ticket = ticket;
				await this.#doors.put(ticket, upload.file, (sent) => this.#progress(upload, sent), abort.signal);
				if (abort.signal.aborted) return;
				this.#progress(upload, upload.file.size);
				upload.stored = true;
			}
			upload.phase = 'finishing';
			upload.result = await this.#doors.finish(upload.ticket!, upload.file);
			if (!abort.signal.aborted) upload.phase = 'done';
		} catch (cause) {
			if (abort.signal.aborted || (cause instanceof TransferError && cause.reason === 'aborted')) return;
			upload.failure = this.#doors.explain(cause);
			upload.phase = 'failed';
		} finally {
			if (upload.abort === abort) upload.abort = null;
			if (this.active === 0) {
				this.#samples = [];
				this.speed = 0;
			}
			this.#pump();
		}
	}

	#progress(upload: Upload<Result>, sent: number): void {
		const delta = sent - upload.sent;
		upload.sent = sent;
		if (delta <= 0) return;
		const now = this.#clock();
		this.#samples.push({ at: now, bytes: delta });
		while (this.#samples.length > 1 && now - this.#samples[0]!.at > 5000) this.#samples.shift();
		const span = now - this.#samples[0]!.at;
		// The first sample says how much arrived before it, not how fast: it does not count.
		const bytes = this.#samples.slice(1).reduce((sum, sample) => sum + sample.bytes, 0);
		if (span >= 250) this.speed = (bytes / span) * 1000;
	}
}
