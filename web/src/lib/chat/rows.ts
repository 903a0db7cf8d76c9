/** What travels from the field to the server, and what the transcript shows of it. */
import type { SendRequest } from '#lib/api/types.ts';
import { locale } from '#lib/i18n/locale.svelte.ts';
import type { AttachmentPart, Effort, Message, Part } from './types.ts';

/** The model a send names. */
export interface Pick {
	model: string;
	providerSlug: string | null;
}

export interface Outgoing {
	content: string;
	attachments: AttachmentPart[];
	/** The field's text that became this message; nothing for a starter. */
	draft?: string;
}

/** One message as the transcript shows it. */
export interface Row {
	key: string;
	message: Message;
	parts: Part[];
	/** Not stored yet: the words are on their way. */
	local: boolean;
	running: boolean;
	/** The last reply of the conversation. */
	last: boolean;
}

/** A reply that is not stored yet. */
export function pendingReply(id: string, status: Message['status']): Message {
	return { id, role: 'assistant', status, parts: [], createdAt: Date.now() };
}

/** A message of the person that is not stored yet. */
export function localMessage(id: string, outgoing: Outgoing): Message {
	return {
		id,
		role: 'user',
		status: 'complete',
		parts: [...(outgoing.content ? [{ type: 'text' as const, text: outgoing.content }] : []), ...outgoing.attachments],
		createdAt: Date.now()
	};
}

/** What the server is sent. */
export function requestOf(outgoing: Outgoing, pick: Pick, effort: Effort | null): SendRequest {
	return {
		content: outgoing.content,
		model: pick.model,
		...(pick.providerSlug ? { providerSlug: pick.providerSlug } : {}),
		...(effort ? { reasoningEffort: effort } : {}),
		...(outgoing.attachments.length > 0 ? { attachments: outgoing.attachments.map((file) => file.fileId) } : {}),
		locale: locale.current
	};
}
