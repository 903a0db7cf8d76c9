import { describe, expect, it } from 'vitest';
import { narrowPassage } from './narrow';
import type { Passage } from './types';

const text =
	'11.1 Begins on 1 March.\n11.2 Renews for twelve\nmonths, unless notice is given.\n11.3 Good cause – 😀 remains.';
const passage: Passage = { chunkId: 'c', passage: text, header: '', page: 4, start: 100, end: 100 + [...text].length };

describe('narrowPassage', () => {
	it('keeps the quoted sentence only, whatever its spaces and line breaks', () => {
		const narrowed = narrowPassage(passage, '“11.2 Renews for twelve months,  unless notice is given.”');
		expect(narrowed.passage).toBe('11.2 Renews for twelve\nmonths, unless notice is given.');
		expect(narrowed.start).toBe(100 + text.indexOf('11.2'));
		expect(narrowed.end).toBe(narrowed.start + narrowed.passage.length);
	});

	it('counts scalar values after characters outside the basic plane', () => {
		const moved = { ...passage, passage: `😀😀 ${text}`, end: passage.end + 3 };
		expect(narrowPassage(moved, 'Renews for twelve months, unless notice').start).toBe(
			100 + 3 + text.indexOf('Renews')
		);
	});

	it('leaves the passage whole when the quote is short, absent or from elsewhere', () => {
		expect(narrowPassage(passage, null)).toBe(passage);
		expect(narrowPassage(passage, 'twelve months')).toBe(passage);
		expect(narrowPassage(passage, 'These words were never in that passage at all.')).toBe(passage);
	});
});
