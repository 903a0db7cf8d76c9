/** The document or file open beside a chat, and the passages of the answer that brought the reader there. */
import type { Readable } from '#lib/documents/types.ts';
import { passagesOf, type Answer, type Citation } from './answer.ts';

export class ReadingPane {
	what: Readable | null = $state.raw(null);
	chunkId: string | null = $state(null);
	passages: Citation[] = $state.raw([]);
	/** The answer's words around the mark that led here. */
	quote: string | null = $state(null);
	#from: HTMLElement | null = null;

	/** `answer` brought the reader here; nothing when the person's own file is opened. */
	open(what: Readable, chunkId: string | null, answer: Answer | null, from: HTMLElement, quote: string | null): void {
		if (this.what?.id !== what.id) this.what = what;
		this.passages = answer ? passagesOf(answer, what) : [];
		this.chunkId = chunkId ?? this.passages[0]?.chunkId ?? null;
		this.quote = quote;
		this.#from = from;
	}

	/** Goes to another passage of the same document. */
	step(chunkId: string): void {
		this.chunkId = chunkId;
		this.quote = null;
	}

	/** Closes and gives the focus back to where it came from. */
	close(): void {
		if (this.what === null) return;
		this.what = null;
		this.chunkId = null;
		this.quote = null;
		this.passages = [];
		const from = this.#from;
		this.#from = null;
		if (from?.isConnected) queueMicrotask(() => from.focus());
	}

	shows(what: Readable | null, chunkId: string | null): boolean {
		if (what === null || this.what?.id !== what.id) return false;
		return chunkId === null ? this.chunkId === null : this.chunkId === chunkId;
	}
}
