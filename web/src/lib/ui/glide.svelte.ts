/**
 * One highlight that glides to the current entry of a list. The container gets the place of its `[aria-current]` (or
 * `[aria-selected="true"]`) descendant as `--glide-y` / `--glide-h` / `--glide-x` / `--glide-w`, and
 * draws the pill itself; `--glide-t` is how long it moves, `--glide-o` whether it is seen.
 *
 * ```svelte
 * <ul {@attach glide(() => page.url.pathname)}>
 * ```
 */
import type { Attachment } from 'svelte/attachments';

export function glide(current: () => unknown): Attachment<HTMLElement> {
	return (container) => {
		const place = () => {
			const target = container.querySelector<HTMLElement>('[aria-current="page"], [aria-selected="true"]');
			if (!target || target.offsetParent === null) {
				container.style.setProperty('--glide-o', '0');
				return;
			}
			// A pill that was not seen appears where it belongs; only a seen one glides there.
			const seen = container.style.getPropertyValue('--glide-o') === '1';
			container.style.setProperty('--glide-t', seen ? 'var(--t-glide)' : '0ms');
			const outer = container.getBoundingClientRect();
			const inner = target.getBoundingClientRect();
			container.style.setProperty('--glide-y', `${inner.top - outer.top + container.scrollTop}px`);
			container.style.setProperty('--glide-x', `${inner.left - outer.left + container.scrollLeft}px`);
			container.style.setProperty('--glide-h', `${inner.height}px`);
			container.style.setProperty('--glide-w', `${inner.width}px`);
			container.style.setProperty('--glide-o', '1');
		};
		$effect(() => {
			current();
			// The attribute of the new entry is set in the same flush; measure after it.
			queueMicrotask(place);
		});
		const observer = new ResizeObserver(place);
		observer.observe(container);
		return () => observer.disconnect();
	};
}
