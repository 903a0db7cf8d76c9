/** The document open beside a chat, and the passages of the answer that brought the reader there. */
import { passagesOf, type Answer, type Citation } from './answer.ts';

export class ReadingPane {
	documentId: string | null = $state(null);
	chunkId: string | null = $state(null);
	passages: Citation[] = $state.raw([]);
	/** The answer's words around the mark that led here. */
	quote: string | null = $state(null);
	#from: HTMLElement | null = null;

	open(documentId: string, chunkId: string | null, answer: Answer, from: HTMLElement, quote: string | null): void {
		this.documentId = documentId;
		this.passages = passagesOf(answer, documentId);
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
		if (this.documentId === null) return;
		this.documentId = null;
		this.chunkId = null;
		this.quote = null;
		this.passages = [];
		const from = this.#from;
		this.#from = null;
		if (from?.isConnected) queueMicrotask(() => from.focus());
	}

	shows(documentId: string | null, chunkId: string | null): boolean {
		if (documentId === null || this.documentId !== documentId) return false;
		return chunkId === null ? this.chunkId === null : this.chunkId === chunkId;
	}
}
