/** What the open chat is told to do, with the words for when it does not work. */
import { goto } from '$app/navigation';
import { api, send } from '#lib/api/client.ts';
import { toProblem, type ApiProblem } from '#lib/api/problem.ts';
import { queryClient } from '#lib/api/query-client.ts';
import { m } from '#lib/paraglide/messages.js';
import { paths } from '#lib/shell/paths.ts';
import { toasts } from '#lib/ui/toasts.svelte.ts';
import { composerQuery, messagesQuery, parkedQuery, threadKey } from './queries.ts';
import { requestOf, type Outgoing, type Pick } from './rows.ts';
import type { ChatSession } from './session.svelte.ts';
import type { Abandoned, ChatModel, Effort, Message, Parked } from './types.ts';

/** The page's present state; read at the moment of each command. */
interface Around {
	orgId: string;
	session: () => ChatSession;
	stored: () => readonly Message[];
	pick: () => Pick;
	effort: () => Effort | null;
}

/** Says why something was refused. Whose usage limit it was is told in words that are loaded only then. */
async function tell(failure: string, problem: ApiProblem): Promise<void> {
	if (problem.code !== 'BUDGET_EXCEEDED') return void toasts.problem(failure, problem);
	const { refusalSentence } = await import('#lib/usage/BudgetBanner.svelte');
	const detail = refusalSentence(problem.data) ?? m.problem_budget_exceeded();
	toasts.show({ kind: 'error', text: failure, detail, requestId: problem.requestId ?? undefined });
}

function report(problem: ApiProblem | null, failure: string): boolean {
	if (problem) void tell(failure, problem);
	return problem === null;
}

export class Commands {
	readonly #around: Around;

	constructor(around: Around) {
		this.#around = around;
	}

	/** What became of a message: taken, refused, or too early because a file is still being read. */
	async send(session: ChatSession, outgoing: Outgoing): Promise<'taken' | 'early' | 'refused'> {
		const problem = await session.send(outgoing, this.#around.pick(), this.#around.effort());
		if (problem?.code === 'ATTACHMENT_NOT_READY') return 'early';
		return report(problem, m.chat_send_failed()) ? 'taken' : 'refused';
	}

	/** Leaves a message with the server until its files are ready; nothing when it was refused. */
	async park(session: ChatSession, outgoing: Outgoing): Promise<Parked | null> {
		const { orgId, pick, effort } = this.#around;
		session.sending = true;
		try {
			const parked = await send(
				api.POST('/api/app/chat/threads/{id}/deferred-sends', {
					params: { path: { id: session.threadId ?? 'new' }, query: { orgId } },
					body: requestOf(outgoing, pick(), effort())
				})
			);
			session.born(parked.threadId);
			return parked;
		} catch (error) {
			void tell(m.chat_send_failed(), toProblem(error));
			return null;
		} finally {
			session.sending = false;
		}
	}

	/** Takes a parked message back; nothing when it is not there any more. */
	async abandon(parked: Parked): Promise<Abandoned | null> {
		try {
			return await send(
				api.DELETE('/api/app/chat/threads/{id}/deferred-sends/{sendId}', { params: this.#parked(parked) })
			);
		} catch (error) {
			toasts.problem(m.chat_queue_abandon_failed(), toProblem(error));
			return null;
		} finally {
			void this.#reread(parked.threadId);
		}
	}

	async dropFile(parked: Parked, fileId: string): Promise<void> {
		await this.#change(parked, (path) =>
			send(
				api.DELETE('/api/app/chat/threads/{id}/deferred-sends/{sendId}/attachments/{fileId}', {
					params: { ...path, path: { ...path.path, fileId } }
				})
			)
		);
	}

	async retryFile(parked: Parked, fileId: string): Promise<void> {
		await this.#change(parked, (path) =>
			send(
				api.POST('/api/app/chat/threads/{id}/deferred-sends/{sendId}/attachments/{fileId}/retry', {
					params: { ...path, path: { ...path.path, fileId } }
				})
			)
		);
	}

	#parked(parked: Parked) {
		return { path: { id: parked.threadId, sendId: parked.id }, query: { orgId: this.#around.orgId } };
	}

	async #change(
		parked: Parked,
		run: (at: { path: { id: string; sendId: string }; query: { orgId: string } }) => Promise<unknown>
	): Promise<void> {
		try {
			await run(this.#parked(parked));
		} catch (error) {
			toasts.problem(m.chat_change_failed(), toProblem(error));
		}
		await this.#reread(parked.threadId);
	}

	#reread(threadId: string): Promise<void> {
		return queryClient.invalidateQueries({ queryKey: parkedQuery(this.#around.orgId, threadId).queryKey });
	}

	async stop(): Promise<void> {
		try {
			await this.#around.session().stop();
		} catch (error) {
			toasts.problem(m.chat_stop_failed(), toProblem(error));
		}
	}

	async retry(reply: Message): Promise<void> {
		const { session, stored, pick, effort } = this.#around;
		const at = stored().findIndex((message) => message.id === reply.id);
		const question = stored()
			.slice(0, Math.max(0, at))
			.findLast((message) => message.role === 'user');
		report(await session().retry(reply, question, pick(), effort()), m.chat_retry_failed());
	}

	/** True when the new version was accepted; a refused one keeps its draft open. */
	async edit(question: Message, content: string): Promise<boolean> {
		const { session, pick, effort } = this.#around;
		return report(await session().edit(question, content, pick(), effort()), m.chat_edit_failed());
	}

	async switchVersion(messageId: string): Promise<void> {
		await this.#call(m.chat_change_failed(), (id) =>
			send(api.POST('/api/app/chat/threads/{id}/versions', { params: this.#at(id), body: { messageId } }))
		);
	}

	async fork(reply: Message): Promise<void> {
		const { orgId } = this.#around;
		await this.#call(m.chat_fork_failed(), async (id) => {
			const copy = await send(
				api.POST('/api/app/chat/threads/{id}/fork', { params: this.#at(id), body: { messageId: reply.id } })
			);
			toasts.success(m.chat_forked());
			await goto(paths.chat(orgId, copy.id));
		});
	}

	/** Shows the rating at once and takes it back when the server refuses. True when it was saved. */
	async rate(reply: Message, rating: 'up' | 'down' | null, comment?: string): Promise<boolean> {
		const { orgId, session } = this.#around;
		const id = session().threadId;
		if (!id) return false;
		const { queryKey } = messagesQuery(orgId, id);
		const mark = (feedback: Message['feedback'], commented: boolean) =>
			queryClient.setQueryData(queryKey, (messages) =>
				messages?.map((message) => (message.id === reply.id ? { ...message, feedback, commented } : message))
			);
		await queryClient.cancelQueries({ queryKey });
		mark(rating ?? undefined, rating !== null && !!comment);
		try {
			await send(
				api.PUT('/api/app/chat/threads/{id}/messages/{mid}/feedback', {
					params: { path: { id, mid: reply.id }, query: { orgId } },
					body: { rating, ...(comment ? { comment } : {}) }
				})
			);
			return true;
		} catch (error) {
			mark(reply.feedback, reply.commented ?? false);
			toasts.problem(comment === undefined ? m.chat_rate_failed() : m.chat_comment_failed(), toProblem(error));
			return false;
		}
	}

	/** Keeps the pick for the next message, here and on every other device. Nothing is Auto. */
	async pick(model: ChatModel | null): Promise<void> {
		const { orgId } = this.#around;
		const { queryKey } = composerQuery(orgId);
		const pick = model ? { model: model.id, providerSlug: model.providerSlug } : null;
		queryClient.setQueryData(queryKey, (before) => before && { ...before, pick });
		try {
			await send(api.PUT('/api/app/chat/pick', { params: { query: { orgId } }, body: pick ?? { model: 'auto' } }));
		} catch (error) {
			toasts.problem(m.chat_pick_failed(), toProblem(error));
			void queryClient.invalidateQueries({ queryKey });
		}
	}

	#at(id: string) {
		return { path: { id }, query: { orgId: this.#around.orgId } };
	}

	async #call(failure: string, run: (id: string) => Promise<unknown>): Promise<void> {
		const { orgId, session } = this.#around;
		const id = session().threadId;
		if (!id) return;
		try {
			await run(id);
			await queryClient.invalidateQueries({ queryKey: threadKey(orgId, id) });
		} catch (error) {
			toasts.problem(failure, toProblem(error));
		}
	}
}
