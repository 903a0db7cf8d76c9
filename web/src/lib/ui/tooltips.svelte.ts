/**
 * The one tooltip of the page: 200 ms after the pointer rests or at once for keyboard focus, 100 ms out, never on click.
 * `Tooltip.svelte` hands out the listeners, `TooltipHost.svelte` draws it.
 */
import type { Side } from './float.ts';

const IN_MS = 200;
const OUT_MS = 100;

export interface Tip {
	anchor: Element;
	text: string;
	shortcut?: string;
	side: Side;
}

class Tooltips {
	shown = $state.raw<Tip | null>(null);
	#timer: ReturnType<typeof setTimeout> | undefined;

	/** Shows a tip after the delay; at once while another one stands, so that a row of icons reads fluently. */
	rest(tip: Tip): void {
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => (this.shown = tip), this.shown ? 0 : IN_MS);
	}
	show(tip: Tip): void {
		clearTimeout(this.#timer);
		this.shown = tip;
	}
	leave(): void {
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => (this.shown = null), OUT_MS);
	}
	hide(): void {
		clearTimeout(this.#timer);
		this.shown = null;
	}
}

export const tooltips = new Tooltips();
