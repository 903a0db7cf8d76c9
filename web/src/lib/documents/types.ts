/** The contract's shapes of documents, under the names the pages use. Times are epoch milliseconds. */
import type { components } from '#lib/api/schema.ts';

type Schemas = components['schemas'];

export type IndexingStatus = Schemas['Status'];
export type Indexing = Schemas['Indexing'];
export type Document = Schemas['Document'];
export type DocumentPage = Schemas['DocumentPage'];
/** A window of a document's extracted text. Offsets count Unicode scalar values. */
export type ExtractedText = Schemas['TextPart'];
/** Where a passage stands in the extracted text. */
export type Passage = Schemas['Passage'];
/** What can be opened beside a page: a document of the library, or a file that belongs to one chat only. */
export interface Readable {
	kind: 'document' | 'file';
	id: string;
}
/** What a pane knows of it before its content is read. */
export interface About {
	title: string;
	fileName: string;
	/** Lower-case, with or without its dot; may be empty. */
	extension: string;
	/** Why there is no extracted text; nothing when there is. */
	errorCode: string | null;
}
export type UploadTicket = Schemas['UploadSlot'];
