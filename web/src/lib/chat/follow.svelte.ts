/**
 * Where the transcript stands. It follows growing text only while the reader is at its end; scrolling up
 * lets go, reaching the end again takes hold. A message that was just sent comes to stand under the header.
 */
import { untrack } from 'svelte';

/** Closer than this many pixels to the end counts as being there. */
const NEAR = 48;
/** Distance of a sent message from the top edge. */
const UNDER_HEADER = 44;
/** Space below the last turn. */
const BELOW = 24;

export class Follow {
	/** The reader is at the end, and new text keeps them there. */
	following = $state(true);
	/** There is more below than fits, and the reader is not there. */
	away = $state(false);
	#box: HTMLElement | null = null;
	#lastTop = 0;
	/** Until then, our own scrolling must not be taken for the reader's. */
	#ours = false;

	/** `fromEnd`: whether the reader begins at the end. */
	constructor(fromEnd = true) {
		this.following = fromEnd;
	}

	/** Attaches to the scrolling box and to the content that grows in it. */
	attach = (box: HTMLElement) => {
		this.#box = box;
		const content = box.firstElementChild;
		const resized = new ResizeObserver(() => this.#grown());
		resized.observe(box);
		if (content) resized.observe(content);
		const scrolled = () => this.#scrolled();
		const wheel = (event: WheelEvent) => {
			if (event.deltaY < 0) untrack(() => (this.following = false));
		};
		box.addEventListener('scroll', scrolled, { passive: true });
		box.addEventListener('wheel', wheel, { passive: true });
		return () => {
			resized.disconnect();
			box.removeEventListener('scroll', scrolled);
			box.removeEventListener('wheel', wheel);
			this.#box = null;
		};
	};

	get #gap(): number {
		const box = this.#box;
		return box ? box.scrollHeight - box.clientHeight - box.scrollTop : 0;
	}

	#grown(): void {
		if (this.following) this.#toEnd();
		this.#judge();
	}

	#scrolled(): void {
		const box = this.#box;
		if (!box) return;
		const up = box.scrollTop < this.#lastTop - 1;
		this.#lastTop = box.scrollTop;
		if (this.#ours) this.#ours = false;
		else if (this.#gap <= NEAR) this.following = true;
		else if (up) this.following = false;
		this.#judge();
	}

	#judge(): void {
		this.away = this.#gap > NEAR * 2;
	}

	#toEnd(): void {
		const box = this.#box;
		if (!box) return;
		const top = box.scrollHeight - box.clientHeight;
		if (Math.abs(box.scrollTop - top) < 1) return;
		this.#ours = true;
		box.scrollTop = top;
		this.#lastTop = top;
	}

	/** Jumps to the end and follows from there. */
	end(): void {
		this.following = true;
		this.#toEnd();
		this.#judge();
	}

	/** Brings an element to just under the header. The transcript keeps room below the last turn, so this is also its end. */
	bring(element: HTMLElement): void {
		const box = this.#box;
		if (!box) return;
		this.following = true;
		const top = element.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop - UNDER_HEADER;
		this.#ours = true;
		box.scrollTop = top;
		this.#lastTop = box.scrollTop;
		this.#judge();
	}

	/** Height the last turn must fill so that its question can stand under the header, in pixels. */
	room(): number {
		return this.#box ? Math.max(0, this.#box.clientHeight - UNDER_HEADER - BELOW) : 0;
	}
}
