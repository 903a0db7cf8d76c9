/** The wire shapes of documents, as the app API sends them. Times are epoch milliseconds. */

export type IndexingStatus = 'pending' | 'queued' | 'running' | 'completed' | 'failed' | 'unsupported' | 'skipped';

export interface Indexing {
	status: IndexingStatus;
	/** The passages carry vectors; without, they are found by words alone. */
	embedded: boolean;
	indexedAt?: number | null;
	error?: string | null;
	errorCode?: string | null;
	progress?: { done: number; total: number } | null;
}

export interface Document {
	id: string;
	title: string;
	fileName: string;
	extension: string;
	mimeType: string;
	size: number;
	createdAt: number;
	updatedAt: number;
	createdBy: { id: string; name: string } | null;
	contentHash: string | null;
	indexing: Indexing;
}

export interface DocumentPage {
	page: Document[];
	isDone: boolean;
	continueCursor: string | null;
	total: number;
	searchMode: 'keywords' | 'hybrid';
}

/** A window of a document's extracted text. Offsets count Unicode scalar values. */
export interface ExtractedText {
	text: string;
	totalLength: number;
	nextOffset: number | null;
}

/** Where a passage stands in the extracted text. */
export interface Passage {
	chunkId: string;
	passage: string;
	header: string;
	page: number | null;
	start: number;
	end: number;
}

export interface UploadTicket {
	fileId: string;
	url: string;
	method: string;
	headers: Record<string, string>;
}
