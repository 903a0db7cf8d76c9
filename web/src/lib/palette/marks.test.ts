import { expect, test } from 'vitest';
import { marked, quoted } from './marks.ts';

const hits = (text: string, query: string) =>
	marked(text, query)
		.filter((piece) => piece.hit)
		.map((piece) => piece.text);

test('every word of the query is marked, in any case', () =>
	expect(hits('Calibration service for the lab', 'LAB calibration')).toEqual(['Calibration', 'lab']));
test('the pieces put together are the text', () =>
	expect(
		marked('a.b*c', '.b*')
			.map((piece) => piece.text)
			.join('')
	).toBe('a.b*c'));
test('an empty query marks nothing', () => expect(marked('text', '  ')).toEqual([{ text: 'text', hit: false }]));
test('signs of regular expressions are ordinary letters', () =>
	expect(hits('C++ (draft)', 'c++ (')).toEqual(['C++', '(']));
test('the server marks the match itself in a snippet', () =>
	expect(quoted('…two «calibration» visits…')).toEqual([
		{ text: '…two ', hit: false },
		{ text: 'calibration', hit: true },
		{ text: ' visits…', hit: false }
	]));
