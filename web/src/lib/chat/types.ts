/** The wire shapes of chat, as the app API sends them. Times are epoch milliseconds. */

export type Effort = 'low' | 'medium' | 'high' | 'extra' | 'max';

export interface Thread {
	id: string;
	title: string | null;
	createdAt: number;
	updatedAt: number;
	archivedAt: number | null;
	pinnedAt: number | null;
	unread: boolean;
	running: boolean;
	reasoningEffort: Effort | null;
	snippet?: string | null;
	matchMessageId?: string | null;
}

export interface TextPart {
	type: 'text';
	text: string;
}

export interface ReasoningPart {
	type: 'reasoning';
	text: string;
}

export interface AttachmentPart {
	type: 'attachment';
	name: string;
	mediaType: string;
	fileId: string;
	sizeBytes: number;
}

export interface ToolCallPart {
	type: 'tool-call';
	id: string;
	name: string;
	input: unknown;
}

export interface ToolResultPart {
	type: 'tool-result';
	id: string;
	name: string;
	output: unknown;
	isError?: boolean;
}

export interface CitationPart {
	type: 'citation';
	number: number;
	/** Absent for a file that belongs to this chat only. */
	documentId?: string | null;
	fileId?: string;
	title: string;
	passage: string;
	chunkId: string;
	page?: number | null;
}

/** A kind this build does not know. It is kept and shown as nothing. */
export interface OpaquePart {
	type: 'opaque';
}

export type Part =
	TextPart | ReasoningPart | AttachmentPart | ToolCallPart | ToolResultPart | CitationPart | OpaquePart;

export interface Usage {
	inputTokens?: number;
	outputTokens?: number;
	totalTokens?: number;
	reasoningTokens?: number;
	cachedInputTokens?: number;
	costEstimateCents?: number;
}

export type MessageStatus = 'pending' | 'complete' | 'cancelled' | 'failed';

export interface Message {
	id: string;
	role: 'user' | 'assistant';
	status: MessageStatus;
	parts: Part[];
	model?: string | null;
	providerSlug?: string | null;
	usage?: Usage | null;
	error?: string | null;
	errorCode?: string | null;
	finishReason?: string | null;
	contextDroppedCount?: number | null;
	stepLimitHit?: boolean | null;
	createdAt: number;
	startedAt?: number | null;
	firstTokenAt?: number | null;
	doneAt?: number | null;
	/** `index` counts from 0. */
	versions?: { index: number; count: number; ids: string[] } | null;
	feedback?: 'up' | 'down' | null;
}

export interface ChatModel {
	id: string;
	providerSlug: string;
	providerName: string;
	displayName?: string | null;
	contextWindow: number;
	maxOutputTokens?: number | null;
	capabilities: { tools: boolean; vision: boolean; reasoning: boolean };
	demo: boolean;
}

export type SearchMode = 'keywords' | 'hybrid';

export interface Composer {
	models: ChatModel[];
	canManageProviders: boolean;
	searchMode: SearchMode;
	documentsCount: number;
	pick: { model: string; providerSlug: string | null } | null;
}

export interface Accepted {
	threadId: string;
	userMessageId: string;
	messageId: string;
	model: string;
	providerSlug: string;
}

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
