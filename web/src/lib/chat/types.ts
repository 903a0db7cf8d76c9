/** The contract's shapes of chat, under the names the pages use. Times are epoch milliseconds. */
import type { components } from '#lib/api/schema.ts';

type Schemas = components['schemas'];
type PartOf<Kind extends Schemas['Part']['type']> = Extract<Schemas['Part'], { type: Kind }>;

export type Effort = Schemas['ReasoningEffort'];

export type Thread = Schemas['Thread'];

export type Share = Schemas['Share'];

export type TextPart = PartOf<'text'>;

export type ReasoningPart = PartOf<'reasoning'>;

export type AttachmentPart = PartOf<'attachment'>;

export type ToolCallPart = PartOf<'tool-call'>;

/** Absent `isError` is no error. */
export type ToolResultPart = Omit<PartOf<'tool-result'>, 'isError'> & { isError?: boolean };

export type CitationPart = Omit<PartOf<'citation'>, 'fileId'> & { fileId?: string };

/** A kind this build does not know. It is kept and shown as nothing. */
export interface OpaquePart {
	type: 'opaque';
}

export type Part =
	TextPart | ReasoningPart | AttachmentPart | ToolCallPart | ToolResultPart | CitationPart | OpaquePart;

export type Usage = Partial<Schemas['Usage']> & { costEstimateCents?: number };

export type MessageStatus = Schemas['Message']['status'];

export type Message = Omit<Schemas['Message'], 'parts' | 'usage'> & { parts: Part[]; usage?: Usage };

export type ChatModel = Schemas['ChatModel'];

export type SearchMode = Schemas['SearchMode'];

export type Composer = Schemas['Composer'];

export type Accepted = Schemas['Accepted'];

/** A message that waits for its files. */
export type Parked = Schemas['DeferredSend'];

/** What a parked message leaves that was taken back. */
export type Abandoned = Schemas['AbandonedSend'];

export type ParkedFile = Schemas['AttachmentStatus'];

/** What the event stream says about the open chat. */
export type ThreadEvent =
	| { kind: 'turn'; threadId: string; messageId: string; status: 'queued' | 'streaming'; parts: Part[] }
	| { kind: 'delta'; threadId: string; messageId: string; part: 'text' | 'reasoning'; index: number; text: string }
	| { kind: 'part'; threadId: string; messageId: string; index: number; value: Part }
	| { kind: 'settled'; threadId: string; messageId: string; status: MessageStatus };

/** One row that `rag_search` returned. */
export interface SearchRow {
	cite: number;
	kind: string;
	title: string;
	ref: string;
	documentId?: string | null;
	chunkId?: string | null;
	page?: number | null;
	snippet?: string | null;
	score?: number;
}
