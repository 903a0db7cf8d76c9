/**
 * One server-sent-event stream per tab. Hints mark cached reads stale; events of the open thread go to the page that
 * shows it:
 *
 * ```ts
 * $effect(() => live.watchThread(threadId, { turn, delta, part, settled }));
 * ```
 */
import { queryClient } from '#lib/api/query-client.ts';
import { base } from '#lib/shell/paths.ts';
import { connectivity } from './connectivity.svelte.ts';
import type { DeltaEvent, HintEvent, PartEvent, SettledEvent, ThreadHandlers, TurnEvent } from './events.ts';
import { staleKeys } from './topics.ts';
import { checkVersion } from './version.svelte.ts';

/** Pauses before reconnecting after the server closed the stream for good; the last one repeats. */
const BACKOFF_MS = [500, 1_000, 2_000, 5_000];

class Live {
	/** Whether the stream is open right now. */
	open = $state(false);
	#orgId: string | undefined;
	#watched: { threadId: string; handlers: ThreadHandlers } | undefined;
	#source: EventSource | undefined;
	/** The stream before, kept until the next one is open, so that no hint falls between them. */
	#retiring: EventSource | undefined;
	#pending = false;
	#attempt = 0;
	#retry: ReturnType<typeof setTimeout> | undefined;
	/** Whether hints may have been sent while no stream was open; so it is at the start, too. */
	#missed = true;
	/** Whether a stream was open before. */
	#before = false;

	/** Opens the stream while the page still loads, so that hardly anything is read before hints can arrive. */
	prepare(orgId: string): void {
		if (this.#orgId === orgId) return;
		this.#close();
		this.#orgId = orgId;
		this.#missed = true;
		this.#reconnect();
	}

	/** Follows an organization until the returned function is called. */
	follow(orgId: string): () => void {
		this.prepare(orgId);
		return () => {
			if (this.#orgId !== orgId) return;
			this.#orgId = undefined;
			this.#close();
		};
	}

	/** Sends the events of a thread to `handlers` until the returned function is called. One thread at a time. */
	watchThread(threadId: string, handlers: ThreadHandlers): () => void {
		const changed = this.#watched?.threadId !== threadId;
		const mine = { threadId, handlers };
		this.#watched = mine;
		if (changed) this.#reconnect();
		else if (this.open) handlers.connected?.();
		return () => {
			if (this.#watched !== mine) return;
			this.#watched = undefined;
			this.#reconnect();
		};
	}

	/** Leaving one thread for another unwatches and watches in one breath: connect once, afterwards. */
	#reconnect(): void {
		if (this.#pending) return;
		this.#pending = true;
		queueMicrotask(() => {
			this.#pending = false;
			this.#connect();
		});
	}

	#connect(): void {
		if (!this.#orgId) return this.#close();
		clearTimeout(this.#retry);
		this.#retiring?.close();
		this.#retiring = this.#source;
		const query = new URLSearchParams({ orgId: this.#orgId });
		if (this.#watched) query.set('threadId', this.#watched.threadId);
		const source = new EventSource(`${base}/events?${query}`);
		this.#source = source;
		source.addEventListener('hello', () => this.#opened());
		source.addEventListener('error', () => this.#broken(source));
		// So many changes at once that hints were dropped: everything on screen is read again.
		source.addEventListener('resync', () => void queryClient.invalidateQueries());
		this.#on<HintEvent>(source, 'hint', (event) => this.#stale(event));
		this.#on<TurnEvent>(source, 'turn', (event) => this.#handlers(event.threadId)?.turn?.(event));
		this.#on<DeltaEvent>(source, 'delta', (event) => this.#handlers(event.threadId)?.delta?.(event));
		this.#on<PartEvent>(source, 'part', (event) => this.#handlers(event.threadId)?.part?.(event));
		this.#on<SettledEvent>(source, 'settled', (event) => this.#handlers(event.threadId)?.settled?.(event));
	}

	#on<T>(source: EventSource, name: string, handle: (event: T) => void): void {
		source.addEventListener(name, (event) => handle(JSON.parse((event as MessageEvent<string>).data) as T));
	}

	#handlers(threadId: string): ThreadHandlers | undefined {
		return this.#watched?.threadId === threadId ? this.#watched.handlers : undefined;
	}

	#opened(): void {
		this.#retiring?.close();
		this.#retiring = undefined;
		this.open = true;
		this.#attempt = 0;
		connectivity.reached();
		// Hints sent while the stream was down are lost: what is older than this moment is read again.
		if (this.#missed) {
			// A server that was away may have come back as another one.
			if (this.#before) void checkVersion();
			const now = Date.now();
			void queryClient.invalidateQueries({ predicate: ({ state }) => state.dataUpdatedAt < now });
		}
		this.#missed = false;
		this.#before = true;
		this.#watched?.handlers.connected?.();
	}

	#broken(source: EventSource): void {
		if (source !== this.#source) return;
		if (this.open) this.#watched?.handlers.disconnected?.();
		this.open = false;
		this.#missed = true;
		connectivity.failed();
		if (source.readyState !== EventSource.CLOSED) return;
		const wait = BACKOFF_MS[Math.min(this.#attempt++, BACKOFF_MS.length - 1)];
		this.#retry = setTimeout(() => this.#connect(), wait);
	}

	#stale(event: HintEvent): void {
		if (!this.#orgId) return;
		for (const queryKey of staleKeys(this.#orgId, event)) void queryClient.invalidateQueries({ queryKey });
	}

	#close(): void {
		clearTimeout(this.#retry);
		this.#retiring?.close();
		this.#source?.close();
		this.#retiring = this.#source = undefined;
		this.open = false;
	}
}

export const live = new Live();
