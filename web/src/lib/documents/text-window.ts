/**
 * A window of a long text as lines, with one passage marked. Offsets on the wire count Unicode scalar
 * values; strings here count UTF-16 units. Both meet in this module only.
 */

export interface Segment {
	text: string;
	marked: boolean;
}

export interface Line {
	/** Offset of the line's first character in the whole text, in scalar values. */
	at: number;
	segments: Segment[];
	/** The passage begins on this line. */
	pin: boolean;
}

/** UTF-16 index of the `count`-th scalar value of a text (its length when the text is shorter). */
export function unitIndex(text: string, count: number): number {
	let index = 0;
	for (let seen = 0; seen < count && index < text.length; seen++) {
		const code = text.codePointAt(index)!;
		index += code > 0xffff ? 2 : 1;
	}
	return index;
}

/** Length of a text in scalar values. */
export function scalarLength(text: string): number {
	let pairs = 0;
	for (let index = 0; index < text.length; index++) {
		const unit = text.charCodeAt(index);
		if (unit >= 0xd800 && unit <= 0xdbff) pairs++;
	}
	return text.length - pairs;
}

/**
 * Splits a window into lines. `offset` is where the window begins; `start` and `end` bound the passage,
 * all in scalar values of the whole text.
 */
export function toLines(text: string, offset: number, mark: { start: number; end: number } | null): Line[] {
	const from = mark ? unitIndex(text, Math.max(0, mark.start - offset)) : 0;
	const to = mark && mark.end > offset ? unitIndex(text, mark.end - offset) : 0;
	const lines: Line[] = [];
	let unit = 0;
	let scalar = offset;
	let pinned = false;
	for (const row of text.split('\n')) {
		const end = unit + row.length;
		const segments: Segment[] = [];
		const a = Math.min(Math.max(from, unit), end);
		const b = Math.min(Math.max(to, unit), end);
		if (mark && a < b) {
			// Blank ends of the passage are not marked.
			const inner = row.slice(a - unit, b - unit);
			const lead = inner.length - inner.trimStart().length;
			const tail = inner.length - inner.trimEnd().length;
			if (inner.trim() !== '') {
				if (a + lead > unit) segments.push({ text: row.slice(0, a + lead - unit), marked: false });
				segments.push({ text: inner.trim(), marked: true });
				if (b - tail < end) segments.push({ text: row.slice(b - tail - unit), marked: false });
			}
		}
		if (segments.length === 0) segments.push({ text: row, marked: false });
		const marked = segments.some((segment) => segment.marked);
		lines.push({ at: scalar, segments, pin: marked && !pinned });
		pinned ||= marked;
		unit = end + 1;
		scalar += scalarLength(row) + 1;
	}
	return lines;
}
