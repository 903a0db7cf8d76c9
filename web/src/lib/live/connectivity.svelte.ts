/**
 * Can the server be reached? Failing requests, a broken live stream and the browser's own offline signal raise the
 * question; after three seconds without an answer the overlay shows, and `/api/health` is asked every five seconds until
 * it answers.
 */

import { base } from '#lib/shell/paths.ts';

/** How long requests may fail before people are told. */
const GRACE_MS = 3_000;
/** Pause between two probes while the server is away. */
const PROBE_MS = 5_000;

export type Connection = 'connected' | 'offline' | 'unreachable';

class Connectivity {
	state = $state<Connection>('connected');
	#grace: ReturnType<typeof setTimeout> | undefined;
	#probe: ReturnType<typeof setTimeout> | undefined;
	#recovered = new Set<() => void>();

	/** Calls `listener` each time the server answers again after the overlay was up. */
	onRecovered(listener: () => void): () => void {
		this.#recovered.add(listener);
		return () => this.#recovered.delete(listener);
	}

	/** A request got no answer. */
	failed(): void {
		if (this.state !== 'connected' || this.#grace) return;
		this.#grace = setTimeout(() => void this.#judge(), GRACE_MS);
	}

	/** A request got an answer, whatever it said. */
	reached(): void {
		clearTimeout(this.#grace);
		this.#grace = undefined;
		clearTimeout(this.#probe);
		if (this.state === 'connected') return;
		this.state = 'connected';
		for (const listener of this.#recovered) listener();
	}

	/** Follows the browser's own signal. Returns the function that stops. */
	watch(): () => void {
		const lost = () => this.failed();
		const back = () => void this.#judge();
		addEventListener('offline', lost);
		addEventListener('online', back);
		return () => {
			removeEventListener('offline', lost);
			removeEventListener('online', back);
		};
	}

	async #judge(): Promise<void> {
		clearTimeout(this.#probe);
		try {
			const response = await fetch(`${base}/api/health`, { cache: 'no-store', signal: AbortSignal.timeout(PROBE_MS) });
			if (response.ok) return this.reached();
		} catch {
			// No answer: the state below says so.
		}
		this.#grace = undefined;
		this.state = navigator.onLine ? 'unreachable' : 'offline';
		this.#probe = setTimeout(() => void this.#judge(), PROBE_MS);
	}
}

export const connectivity = new Connectivity();
