/** A text field that is as tall as its text, between two heights; beyond, it scrolls. */
import type { Attachment } from 'svelte/attachments';

/** `value` is read so that the height follows changes from outside as well. Heights in pixels. */
export function growing(value: () => string, min: number, max: number): Attachment<HTMLTextAreaElement> {
	return (node) => {
		value();
		node.style.height = '0';
		const height = Math.min(max, Math.max(min, node.scrollHeight));
		node.style.height = `${height}px`;
		node.style.overflowY = node.scrollHeight > max ? 'auto' : 'hidden';
	};
}
