/**
 * One chat on screen: what is being sent, what is streaming, and the rows that the reader sees.
 *
 * The stored messages are the query cache's; this holds only what the server does not have yet (the
 * message on its way) and what it has not stored yet (the running turn). A row keeps its key through
 * all of it, so nothing is mounted anew when a message becomes real or a turn settles.
 */
import { SvelteMap } from 'svelte/reactivity';
import { api, send } from '#lib/api/client.ts';
import { toProblem, type ApiProblem } from '#lib/api/problem.ts';
import { locale } from '#lib/i18n/locale.svelte.ts';
import type { ThreadHandlers } from '#lib/live/events.ts';
import { rereadMessages, rereadThreads } from './queries.ts';
import { localMessage, pendingReply, requestOf, type Outgoing, type Pick, type Row } from './rows.ts';
import { applyEvent, type Turn } from './turn.ts';
import type { Accepted, AttachmentPart, Effort, Message, Part, ThreadEvent } from './types.ts';

/** The state of the chat that is open, or of the draft that is about to become one. */
export class ChatSession {
	readonly orgId: string;
	threadId: string | null = $state(null);
	/** The message on its way, shown at once. */
	#outgoing: { key: string; message: Message } | null = $state.raw(null);
	/** Stored messages from this one on are hidden: a new version is taking their place. */
	#cut: { id: string; keep: boolean } | null = $state.raw(null);
	turn: Turn | null = $state.raw(null);
	sending = $state(false);
	stopping = $state(false);
	/** The stream broke in the middle of a turn. */
	interrupted = $state(false);
	/** When the running turn was first seen, by this browser's clock. */
	startedAt: number | null = $state(null);
	/** When its first words came. */
	firstTextAt: number | null = $state(null);
	/** Send → first words in milliseconds, by message, for what this tab saw itself. */
	readonly firstWords = new SvelteMap<string, number>();
	/** Seconds of thought by message, for what this tab saw itself. */
	readonly thought = new SvelteMap<string, number>();
	/** Called with the id of the chat that the first message of a draft made, before anything shows it. */
	onborn: ((threadId: string) => void) | null = null;
	#sentAt: number | null = null;
	/** Counts sends, so that the transcript can scroll to the new message. */
	sends = $state(0);

	readonly #keys = new SvelteMap<string, string>();
	#events: ThreadEvent[] = [];
	#frame: number | null = null;
	#serial = 0;

	constructor(orgId: string, threadId: string | null) {
		this.orgId = orgId;
		this.threadId = threadId;
	}

	get busy(): boolean {
		return this.sending || (this.turn !== null && this.turn.phase !== 'settled');
	}

	/** What the transcript shows, given what is stored. */
	rows(stored: readonly Message[]): Row[] {
		let messages = stored;
		const cut = this.#cut;
		if (cut) {
			const at = stored.findIndex((message) => message.id === cut.id);
			if (at >= 0) messages = stored.slice(0, cut.keep ? at + 1 : at);
		}
		const rows: Row[] = messages.map((message) => this.#row(message, false));
		const outgoing = this.#outgoing;
		if (outgoing && !messages.some((message) => this.#keys.get(message.id) === outgoing.key)) {
			rows.push({ ...this.#row(outgoing.message, true), key: outgoing.key });
		}
		const turn = this.turn;
		if (turn && !messages.some((message) => message.id === turn.messageId)) {
			rows.push(this.#row(pendingReply(turn.messageId, turn.status), false));
		}
		const reply = rows.findLast((row) => row.message.role === 'assistant');
		if (reply && rows.at(-1) === reply) reply.last = true;
		return rows;
	}

	#row(message: Message, local: boolean): Row {
		const turn = this.turn?.messageId === message.id ? this.turn : null;
		const running = message.role === 'assistant' && (turn ? turn.phase !== 'settled' : message.status === 'pending');
		return {
			key: this.#keys.get(message.id) ?? message.id,
			message:
				turn && turn.phase === 'settled' && message.status === 'pending'
					? { ...message, status: turn.status }
					: message,
			parts: turn && message.status === 'pending' ? turn.parts : message.parts,
			local,
			running,
			last: false
		};
	}

	/** Sends a message; the first one of a draft makes the chat. Returns the problem when it was refused. */
	async send(outgoing: Outgoing, pick: Pick, effort: Effort | null): Promise<ApiProblem | null> {
		const body = requestOf(outgoing, pick, effort);
		this.#show(outgoing);
		return this.#start(async () =>
			send(
				api.POST('/api/app/chat/threads/{id}/messages', {
					params: { path: { id: this.threadId ?? 'new' }, query: { orgId: this.orgId } },
					body
				})
			)
		);
	}

	/** Writes a new version of a user message. */
	async edit(message: Message, content: string, pick: Pick, effort: Effort | null): Promise<ApiProblem | null> {
		const attachments = message.parts.filter((part): part is AttachmentPart => part.type === 'attachment');
		const outgoing = { content, attachments };
		this.#cut = { id: message.id, keep: false };
		this.#show(outgoing);
		return this.#start(async () =>
			send(
				api.POST('/api/app/chat/threads/{id}/messages/{mid}/edit', {
					params: { path: { id: this.threadId ?? '', mid: message.id }, query: { orgId: this.orgId } },
					body: requestOf(outgoing, pick, effort)
				})
			)
		);
	}

	/** Asks for another reply in place of this one. */
	async retry(
		reply: Message,
		question: Message | undefined,
		pick: Pick,
		effort: Effort | null
	): Promise<ApiProblem | null> {
		this.#cut = { id: question?.id ?? reply.id, keep: question !== undefined };
		return this.#start(async () =>
			send(
				api.POST('/api/app/chat/threads/{id}/messages/{mid}/retry', {
					params: { path: { id: this.threadId ?? '', mid: reply.id }, query: { orgId: this.orgId } },
					body: {
						model: pick.model,
						...(pick.providerSlug ? { providerSlug: pick.providerSlug } : {}),
						...(effort ? { reasoningEffort: effort } : {}),
						locale: locale.current
					}
				})
			)
		);
	}

	/** The draft has become a chat, if it was one. */
	born(threadId: string): void {
		if (this.threadId === null) this.onborn?.(threadId);
		this.threadId = threadId;
	}

	async stop(): Promise<void> {
		if (!this.threadId || this.stopping) return;
		this.stopping = true;
		try {
			await send(
				api.POST('/api/app/chat/threads/{id}/stop', {
					params: { path: { id: this.threadId }, query: { orgId: this.orgId } }
				})
			);
			// The stream tells when it has stopped; if it is down, the stored messages do.
			await this.#reread();
		} finally {
			this.stopping = false;
		}
	}

	#show(outgoing: Outgoing): void {
		const key = `local-${this.#serial++}`;
		this.#outgoing = { key, message: localMessage(key, outgoing) };
		this.sends++;
	}

	async #start(call: () => Promise<Accepted>): Promise<ApiProblem | null> {
		this.sending = true;
		this.#sentAt = performance.now();
		try {
			const accepted = await call();
			if (this.#outgoing) this.#keys.set(accepted.userMessageId, this.#outgoing.key);
			this.born(accepted.threadId);
			if (this.turn?.messageId !== accepted.messageId) {
				this.#begin({
					threadId: accepted.threadId,
					messageId: accepted.messageId,
					phase: 'queued',
					status: 'pending',
					parts: []
				});
			}
			rereadThreads(this.orgId);
			void this.#reread();
			return null;
		} catch (error) {
			this.#outgoing = null;
			this.#cut = null;
			return toProblem(error);
		} finally {
			this.sending = false;
		}
	}

	#begin(turn: Turn): void {
		this.turn = turn;
		this.startedAt = performance.now();
		this.firstTextAt = null;
	}

	/** What the event stream calls. Deltas are folded once per frame, however many came. */
	readonly handlers: ThreadHandlers = {
		turn: (event) => this.#take({ kind: 'turn', ...event, parts: event.parts as Part[] }),
		delta: ({ kind, ...event }) => this.#take({ ...event, kind: 'delta', part: kind }),
		part: ({ part, ...event }) => this.#take({ ...event, kind: 'part', value: part as Part }),
		settled: (event) => this.#take({ kind: 'settled', ...event, status: event.status as Message['status'] }),
		connected: () => {
			this.interrupted = false;
			// A turn that ended while nobody listened says so in the stored messages only.
			if (this.turn) void this.#reread();
		},
		disconnected: () => {
			if (this.turn && this.turn.phase !== 'settled') this.interrupted = true;
		}
	};

	#take(event: ThreadEvent): void {
		if (event.threadId !== this.threadId) return;
		this.#events.push(event);
		if (document.hidden || event.kind === 'settled') this.#flush();
		else this.#frame ??= requestAnimationFrame(() => this.#flush());
	}

	#flush(): void {
		if (this.#frame !== null) cancelAnimationFrame(this.#frame);
		this.#frame = null;
		const events = this.#events;
		this.#events = [];
		let next = this.turn;
		const before = next?.messageId;
		for (const event of events) next = applyEvent(next, event);
		if (next !== this.turn) {
			if (next && next.messageId !== before) this.#begin(next);
			else this.turn = next;
		}
		this.#time();
		if (next?.phase === 'settled') void this.#reread();
	}

	#time(): void {
		const turn = this.turn;
		if (!turn || this.firstTextAt !== null) return;
		if (turn.parts.some((part) => part.type === 'text' && part.text !== '')) {
			this.firstTextAt = performance.now();
			if (this.startedAt !== null) this.thought.set(turn.messageId, (this.firstTextAt - this.startedAt) / 1000);
			if (this.#sentAt !== null) this.firstWords.set(turn.messageId, this.firstTextAt - this.#sentAt);
			this.#sentAt = null;
		}
	}

	/** Reads the stored messages and lets go of everything they now contain. */
	async #reread(): Promise<void> {
		const id = this.threadId;
		if (!id) return;
		try {
			this.reconcile(await rereadMessages(this.orgId, id));
		} catch {
			// The query keeps its error and the page shows it; the turn stays as it is until the next read.
		}
	}

	/** Lets go of the local copies of what is stored. */
	reconcile(stored: readonly Message[]): void {
		const outgoing = this.#outgoing;
		if (outgoing && stored.some((message) => this.#keys.get(message.id) === outgoing.key)) this.#outgoing = null;
		const turn = this.turn;
		const reply = turn && stored.find((message) => message.id === turn.messageId);
		if (this.#cut && (reply || !turn)) this.#cut = null;
		if (turn && reply && reply.status !== 'pending') this.turn = null;
	}

	/** Forgets the frame that is planned; the page is going away. */
	close(): void {
		if (this.#frame !== null) cancelAnimationFrame(this.#frame);
		this.#frame = null;
		this.#events = [];
	}
}
