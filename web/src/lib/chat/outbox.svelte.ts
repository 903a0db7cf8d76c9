/**
 * The way of a message from the field to the server: it goes at once, or it is parked there until its files are
 * ready; it takes its draft along, and a draft chat becomes a chat on the way. A refused message gives its text back.
 */
import { goto } from '$app/navigation';
import { queryClient } from '#lib/api/query-client.ts';
import { paths } from '#lib/shell/paths.ts';
import type { Commands } from './commands.ts';
import { NEW_CHAT, type Drafts } from './drafts.ts';
import { parkedQuery, rereadThreads } from './queries.ts';
import type { Outgoing } from './rows.ts';
import type { ChatSession } from './session.svelte.ts';
import { Chip, stageOf } from './staged.svelte.ts';
import type { Parked } from './types.ts';

interface Around {
	orgId: string;
	drafts: Drafts;
	commands: Commands;
	session: () => ChatSession;
	/** The messages of the open chat that are parked. */
	parked: () => readonly Parked[];
	/** Puts text back into the field, unless something else was written meanwhile. */
	restore: (draft: string) => void;
	/** Writes the field. */
	write: (draft: string) => void;
}

export class Outbox {
	readonly #around: Around;

	constructor(around: Around) {
		this.#around = around;
	}

	get #conversation(): string {
		return this.#around.session().threadId ?? NEW_CHAT;
	}

	/** Sends a message; it waits for its files, and for messages that wait already. */
	submit(outgoing: Outgoing): void {
		const stage = stageOf(this.#around.orgId, this.#conversation);
		const early = outgoing.attachments.length > 0 && stage.processing;
		if (early || this.#around.parked().some(({ state }) => state === 'waiting')) void this.#park(outgoing);
		else void this.#dispatch(outgoing);
	}

	/** Takes a parked message back: its text and its files return to the composer. */
	async abandon(parked: Parked): Promise<void> {
		const { orgId, drafts, commands, write } = this.#around;
		const session = this.#around.session();
		const back = await commands.abandon(parked);
		if (!back) return;
		const from = parked.threadId;
		const to = back.threadDeleted ? NEW_CHAT : from;
		const draft = [back.content, drafts.get(from)].filter(Boolean).join('\n\n');
		if (back.threadDeleted) {
			drafts.set(from, '');
			rereadThreads(orgId);
		}
		drafts.set(to, draft);
		stageOf(orgId, to).put(back.attachments.map((file) => Chip.stored(orgId, file)));
		if (session !== this.#around.session()) return;
		if (back.threadDeleted) await goto(paths.newChat(orgId), { replace: true, reset: false });
		write(draft);
	}

	async #park(outgoing: Outgoing): Promise<void> {
		const { orgId, commands, restore } = this.#around;
		const session = this.#around.session();
		const { from, forget, born } = this.#leaving(outgoing);
		const stage = stageOf(orgId, from);
		const chips = stage.lift();
		session.onborn = born;
		const parked = await commands.park(session, outgoing);
		const stillHere = session === this.#around.session();
		if (!parked) {
			stage.put(chips);
			if (stillHere) restore(outgoing.draft ?? '');
			return;
		}
		forget();
		queryClient.setQueryData(parkedQuery(orgId, parked.threadId).queryKey, (before) => [
			...(before ?? []).filter(({ id }) => id !== parked.id),
			parked
		]);
		// It may have gone meanwhile.
		void queryClient.invalidateQueries({ queryKey: parkedQuery(orgId, parked.threadId).queryKey });
		rereadThreads(orgId);
		if (from === NEW_CHAT && stillHere) {
			await goto(paths.chat(orgId, parked.threadId), { replace: true, reset: false });
		}
	}

	async #dispatch(outgoing: Outgoing): Promise<void> {
		const { orgId, commands, restore } = this.#around;
		const session = this.#around.session();
		const { from, forget, born } = this.#leaving(outgoing);
		session.onborn = born;
		const outcome = await commands.send(session, outgoing);
		const stillHere = session === this.#around.session();
		if (outcome === 'early') return this.#park(outgoing);
		if (outcome === 'refused') {
			if (stillHere) restore(outgoing.draft ?? '');
			return;
		}
		forget();
		stageOf(orgId, from).clear();
		if (from === NEW_CHAT && stillHere && session.threadId) {
			await goto(paths.chat(orgId, session.threadId), { replace: true, reset: false });
		}
	}

	/** What happens to the draft of the conversation that a message leaves. */
	#leaving(outgoing: Outgoing): { from: string; forget: () => void; born: (id: string) => void } {
		const { drafts } = this.#around;
		const from = this.#conversation;
		const draft = outgoing.draft ?? '';
		const forget = () => {
			if (drafts.get(from) === draft) drafts.set(from, '');
		};
		// What was typed meanwhile belongs to the chat that is being born.
		const born = (id: string) => {
			forget();
			drafts.set(id, drafts.get(from));
			drafts.set(from, '');
		};
		return { from, forget, born };
	}
}
