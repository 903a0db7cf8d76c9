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
export type UploadTicket = Schemas['UploadSlot'];
