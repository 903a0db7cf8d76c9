/**
 * The way of a message from the field to the server: it may wait for its files, it takes its draft along,
 * and a draft chat becomes a chat on the way. A refused message gives its text back.
 */
import { goto } from '$app/navigation';
import { paths } from '#lib/shell/paths.ts';
import type { Commands } from './commands.ts';
import { NEW_CHAT, type Drafts } from './drafts.ts';
import type { Outgoing } from './rows.ts';
import type { ChatSession } from './session.svelte.ts';
import { stageOf } from './staged.svelte.ts';

interface Around {
	orgId: string;
	drafts: Drafts;
	commands: Commands;
	session: () => ChatSession;
	/** Puts text back into the field. */
	restore: (draft: string) => void;
}

export class Outbox {
	/** A message that waits for its files. */
	parked: Outgoing | null = $state.raw(null);
	readonly #around: Around;

	constructor(around: Around) {
		this.#around = around;
	}

	get #conversation(): string {
		return this.#around.session().threadId ?? NEW_CHAT;
	}

	submit(outgoing: Outgoing): void {
		const stage = stageOf(this.#around.orgId, this.#conversation);
		if (outgoing.attachments.length > 0 && stage.processing) this.parked = outgoing;
		else void this.#dispatch(outgoing);
	}

	/** Sends the message that waited, with the files as they are now. */
	release(): void {
		const outgoing = this.parked;
		this.parked = null;
		const { parts } = stageOf(this.#around.orgId, this.#conversation);
		if (outgoing) void this.#dispatch({ ...outgoing, attachments: parts });
	}

	/** Gives up the message that waits; its text returns to the field. */
	abandon(): void {
		const draft = this.parked?.draft ?? '';
		this.parked = null;
		this.#around.restore(draft);
	}

	async #dispatch(outgoing: Outgoing): Promise<void> {
		const { orgId, drafts, commands, restore } = this.#around;
		const session = this.#around.session();
		const from = this.#conversation;
		const draft = outgoing.draft ?? '';
		const forget = () => {
			if (drafts.get(from) === draft) drafts.set(from, '');
		};
		// What was typed meanwhile belongs to the chat that is being born.
		session.onborn = (id) => {
			forget();
			drafts.set(id, drafts.get(from));
			drafts.set(from, '');
		};
		const accepted = await commands.send(session, outgoing);
		const stillHere = session === this.#around.session();
		if (!accepted) {
			if (stillHere) restore(draft);
			return;
		}
		forget();
		stageOf(orgId, from).clear();
		if (from === NEW_CHAT && stillHere && session.threadId) {
			await goto(paths.chat(orgId, session.threadId), { replace: true, reset: false });
		}
	}
}
