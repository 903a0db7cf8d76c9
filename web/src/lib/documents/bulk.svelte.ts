/**
 * One act on many documents, a few at a time: how far it is can be seen, it can be cancelled, and what failed stays
 * ticked. The server limits how often indexing is started again; the queue waits as long as it asks.
 */
import { toProblem, type ApiProblem } from '#lib/api/problem.ts';
import { problemText } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';
import type { Selection } from '#lib/ui/selection.svelte.ts';
import { toasts } from '#lib/ui/toasts.svelte.ts';
import { removeDocument, restoreDocument, restartIndexing } from './actions.ts';
import { rereadDocuments } from './queries.ts';

const AT_ONCE = 4;

interface Outcome {
	done: string[];
	failed: string[];
	/** Why the first one failed. */
	reason: ApiProblem | null;
}

/** Runs `act` over `ids`, at most `AT_ONCE` at a time, until `signal` ends it. */
export async function forEach(
	ids: readonly string[],
	act: (id: string) => Promise<unknown>,
	signal: AbortSignal,
	progress: (done: number) => void,
	pause: (ms: number) => Promise<void> = (ms) => new Promise((next) => setTimeout(next, ms))
): Promise<Outcome> {
	const outcome: Outcome = { done: [], failed: [], reason: null };
	const queue = [...ids];
	const work = async () => {
		for (let id = queue.shift(); id !== undefined && !signal.aborted; id = queue.shift()) {
			try {
				await act(id);
				outcome.done.push(id);
			} catch (error) {
				const problem = toProblem(error);
				if (problem.retryAfter !== null && !signal.aborted) {
					queue.unshift(id);
					await pause(problem.retryAfter * 1000);
					continue;
				}
				outcome.failed.push(id);
				outcome.reason ??= problem;
			}
			progress(outcome.done.length + outcome.failed.length);
		}
	};
	await Promise.all(Array.from({ length: Math.min(AT_ONCE, ids.length) }, work));
	return outcome;
}

export class Bulk {
	/** How far the running act is; nothing when none runs. */
	running: { kind: 'delete' | 'retry'; done: number; total: number } | null = $state(null);
	#orgId: string;
	#selection: Selection;
	#abort: AbortController | null = null;

	constructor(orgId: string, selection: Selection) {
		this.#orgId = orgId;
		this.#selection = selection;
	}

	cancel(): void {
		this.#abort?.abort();
	}

	async delete(ids: readonly string[]): Promise<void> {
		const outcome = await this.#run('delete', ids, (id) => removeDocument(this.#orgId, id));
		const gone = outcome.done;
		if (gone.length > 0) {
			toasts.success(m.documents_bulk_deleted({ count: gone.length }), {
				label: m.documents_undo(),
				run: () => void this.#restore(gone)
			});
		}
		this.#report(outcome, m.documents_bulk_not_deleted({ count: outcome.failed.length }));
	}

	async retry(ids: readonly string[]): Promise<void> {
		const outcome = await this.#run('retry', ids, (id) => restartIndexing(this.#orgId, id));
		if (outcome.done.length > 0) toasts.success(m.documents_bulk_retried({ count: outcome.done.length }));
		this.#report(outcome, m.documents_bulk_not_retried({ count: outcome.failed.length }));
	}

	async #restore(ids: readonly string[]): Promise<void> {
		const never = new AbortController().signal;
		const outcome = await forEach(
			ids,
			(id) => restoreDocument(this.#orgId, id),
			never,
			() => {}
		);
		rereadDocuments(this.#orgId);
		this.#report(outcome, m.documents_restore_failed());
	}

	async #run(
		kind: 'delete' | 'retry',
		ids: readonly string[],
		act: (id: string) => Promise<unknown>
	): Promise<Outcome> {
		this.#abort = new AbortController();
		this.running = { kind, done: 0, total: ids.length };
		const outcome = await forEach(ids, act, this.#abort.signal, (done) => {
			if (this.running) this.running.done = done;
		});
		this.running = null;
		for (const id of outcome.done) this.#selection.ids.delete(id);
		rereadDocuments(this.#orgId);
		return outcome;
	}

	#report({ failed, reason }: Outcome, text: string): void {
		if (failed.length === 0 || !reason) return;
		toasts.show({ kind: 'error', text, detail: problemText(reason), requestId: reason.requestId ?? undefined });
	}
}
