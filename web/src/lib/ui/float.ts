/**
 * Places something that floats beside its anchor: on the wished side, on the other one when there is no room, and never
 * outside the window. The floating element is `position: fixed`, without margins, and already shown.
 */
export type Side = 'top' | 'right' | 'bottom' | 'left';
export type Align = 'start' | 'center' | 'end';

export interface Placement {
	side: Side;
	align?: Align;
	/** Distance to the anchor, in CSS pixels. */
	offset?: number;
}

/** Least distance to the edge of the window, in CSS pixels. */
const EDGE = 8;
const OPPOSITE: Record<Side, Side> = { top: 'bottom', bottom: 'top', left: 'right', right: 'left' };

interface Box {
	left: number;
	top: number;
	right: number;
	bottom: number;
}

/** Where the element's corner goes, and how much height it may take. Pure, for tests. */
export function place(
	anchor: Box,
	size: { width: number; height: number },
	view: { width: number; height: number },
	{ side, align = 'center', offset = 4 }: Placement
): { left: number; top: number; maxHeight: number } {
	const room: Record<Side, number> = {
		top: anchor.top - offset - EDGE,
		bottom: view.height - anchor.bottom - offset - EDGE,
		left: anchor.left - offset - EDGE,
		right: view.width - anchor.right - offset - EDGE
	};
	const vertical = side === 'top' || side === 'bottom';
	const needed = vertical ? size.height : size.width;
	const other = OPPOSITE[side];
	const chosen = room[side] >= needed || room[side] >= room[other] ? side : other;
	const maxHeight = vertical ? room[chosen] : view.height - 2 * EDGE;
	const height = Math.min(size.height, maxHeight);

	const along = (start: number, end: number, length: number) =>
		align === 'start' ? start : align === 'end' ? end - length : (start + end - length) / 2;
	const clamp = (value: number, length: number, limit: number) =>
		Math.max(EDGE, Math.min(value, limit - EDGE - length));

	let left = along(anchor.left, anchor.right, size.width);
	let top = along(anchor.top, anchor.bottom, height);
	if (chosen === 'top') top = anchor.top - offset - height;
	else if (chosen === 'bottom') top = anchor.bottom + offset;
	else if (chosen === 'left') left = anchor.left - offset - size.width;
	else left = anchor.right + offset;
	return {
		left: Math.round(clamp(left, size.width, view.width)),
		top: Math.round(clamp(top, height, view.height)),
		maxHeight: Math.floor(maxHeight)
	};
}

/** Places `floating` now and again whenever the page moves under it. Returns the function that stops. */
export function float(floating: HTMLElement, anchor: Element, placement: Placement): () => void {
	const update = () => {
		floating.style.maxHeight = '';
		const { left, top, maxHeight } = place(
			anchor.getBoundingClientRect(),
			{ width: floating.offsetWidth, height: floating.offsetHeight },
			{ width: document.documentElement.clientWidth, height: window.innerHeight },
			placement
		);
		Object.assign(floating.style, { left: `${left}px`, top: `${top}px`, maxHeight: `${maxHeight}px` });
	};
	update();
	const resized = new ResizeObserver(update);
	resized.observe(floating);
	addEventListener('resize', update);
	addEventListener('scroll', update, { capture: true, passive: true });
	return () => {
		resized.disconnect();
		removeEventListener('resize', update);
		removeEventListener('scroll', update, { capture: true });
	};
}
