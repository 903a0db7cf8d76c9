import { describe, expect, it } from 'vitest';
import { scalarLength, toLines, unitIndex } from './text-window';

const marked = (text: string, offset: number, start: number, end: number) =>
	toLines(text, offset, { start, end })
		.flatMap((line) => line.segments)
		.filter((segment) => segment.marked)
		.map((segment) => segment.text);

describe('toLines', () => {
	it('marks a passage inside one line and across lines', () => {
		expect(marked('one two three', 0, 4, 7)).toEqual(['two']);
		expect(marked('one\ntwo\nthree', 0, 1, 10)).toEqual(['ne', 'two', 'th']);
	});

	it('counts scalar values, not UTF-16 units', () => {
		const text = '😀😀 target 😀';
		expect(marked(text, 0, 3, 9)).toEqual(['target']);
		expect(unitIndex(text, 3)).toBe(5);
		expect(scalarLength(text)).toBe(11);
	});

	it('places a passage in a window that begins later, and cuts one that reaches over its edges', () => {
		expect(marked('cd efg', 102, 105, 108)).toEqual(['efg']);
		expect(marked('cd efg', 102, 90, 104)).toEqual(['cd']);
		expect(marked('cd efg', 102, 105, 400)).toEqual(['efg']);
		expect(marked('cd efg', 102, 10, 20)).toEqual([]);
	});

	it('keeps the whole text, pins the first marked line and leaves blank ends unmarked', () => {
		const lines = toLines('a\n  b  \nc', 0, { start: 2, end: 7 });
		expect(lines.map((line) => line.segments.map((segment) => segment.text).join(''))).toEqual(['a', '  b  ', 'c']);
		expect(lines.map((line) => line.pin)).toEqual([false, true, false]);
		expect(lines.map((line) => line.at)).toEqual([0, 2, 8]);
		expect(marked('a\n  b  \nc', 0, 2, 7)).toEqual(['b']);
	});
});
