/** What the messages of an open chat may ask of the page around them. */
import { createContext } from 'svelte';
import type { Readable } from '#lib/documents/types.ts';
import type { Answer } from './answer.ts';
import type { Drafts } from './drafts.ts';
import type { ChatSession } from './session.svelte.ts';
import type { Message } from './types.ts';

export interface ChatContext {
	readonly orgId: string;
	readonly session: ChatSession;
	/** Archived: nothing may be written. */
	readonly readonly: boolean;
	/** A snapshot that somebody shared, with their name: it is read and copied, nothing else. */
	readonly published: { by: string } | null;
	/** Unsent text; none where nothing can be written. */
	readonly drafts: Drafts | null;
	readonly providersHref: string | null;
	providerName(slug: string | null | undefined): string | null;
	/** Whether this passage (or, without one, this document or file) is the one on screen. */
	isOpen(what: Readable | null, chunkId: string | null): boolean;
	/** `quote` is what the answer says beside the mark. */
	openDocument(
		what: Readable,
		chunkId: string | null,
		answer: Answer | null,
		from: HTMLElement,
		quote: string | null
	): void;
	retry(reply: Message): void;
	/** Writes a new version of a question; true when it was accepted. */
	edit(question: Message, content: string): Promise<boolean>;
	switchVersion(messageId: string): void;
	fork(reply: Message): void;
	/** True when the rating was saved, or withdrawn for none. A comment takes the place of the one before. */
	rate(reply: Message, rating: 'up' | 'down' | null, comment?: string): Promise<boolean>;
	showInfo(reply: Message): void;
}

export const [useChat, provideChat] = createContext<ChatContext>();
