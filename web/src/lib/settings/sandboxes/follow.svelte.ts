/**
 * Follows one run: its state and everything it prints, in order and each byte once. The stream is resumed from the last
 * number that was read, by the browser itself or, after it gave up, here.
 */
import type { CodeRun } from '#lib/api/types.ts';
import { base } from '#lib/shell/paths.ts';

/** A stretch of text from one of a program's two outputs. */
export interface Piece {
	stream: 'stdout' | 'stderr';
	text: string;
}

/** Pause before a stream that the browser gave up is opened again. */
const AGAIN_MS = 2_000;

export class Following {
	run = $state<CodeRun | undefined>();
	pieces = $state<Piece[]>([]);
	/** Everything that was printed has arrived. */
	done = $state(false);
	/** The connection is lost; it is being opened again. */
	broken = $state(false);
	readonly #url: string;
	readonly #onend: (run: CodeRun) => void;
	#since = 0;
	#source: EventSource | undefined;
	#retry: ReturnType<typeof setTimeout> | undefined;
	/** Bytes of a character may come in two events. */
	readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };

	constructor(orgId: string, id: string, onend: (run: CodeRun) => void) {
		this.#url = `${base}/api/app/code/runs/${encodeURIComponent(id)}/events?${new URLSearchParams({ orgId })}`;
		this.#onend = onend;
		this.#open();
	}

	close(): void {
		clearTimeout(this.#retry);
		this.#source?.close();
	}

	#open(): void {
		const source = new EventSource(`${this.#url}&since=${this.#since}`);
		this.#source = source;
		source.addEventListener('open', () => (this.broken = false));
		source.addEventListener(
			'state',
			(event) => (this.run = JSON.parse((event as MessageEvent<string>).data) as CodeRun)
		);
		source.addEventListener('output', (event) => {
			const { seq, stream, b64 } = JSON.parse((event as MessageEvent<string>).data) as {
				seq: number;
				stream: Piece['stream'];
				b64: string;
			};
			if (seq <= this.#since) return;
			this.#since = seq;
			this.#add(
				stream,
				this.#decoders[stream].decode(
					Uint8Array.from(atob(b64), (c) => c.charCodeAt(0)),
					{ stream: true }
				)
			);
		});
		source.addEventListener('end', (event) => {
			source.close();
			for (const stream of ['stdout', 'stderr'] as const) this.#add(stream, this.#decoders[stream].decode());
			this.run = JSON.parse((event as MessageEvent<string>).data) as CodeRun;
			this.done = true;
			this.#onend(this.run);
		});
		source.addEventListener('error', () => {
			if (this.done) return;
			this.broken = true;
			if (source.readyState !== EventSource.CLOSED) return;
			this.#retry = setTimeout(() => this.#open(), AGAIN_MS);
		});
	}

	#add(stream: Piece['stream'], text: string): void {
		if (!text) return;
		const last = this.pieces.at(-1);
		if (last?.stream === stream && last.text.length < 16_384) last.text += text;
		else this.pieces.push({ stream, text });
	}
}
