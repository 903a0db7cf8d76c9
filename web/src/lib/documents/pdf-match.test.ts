import { describe, expect, it } from 'vitest';
import { findPassage } from './pdf-match';

describe('findPassage', () => {
	it('ignores spaces, hyphens, case and ligatures', () => {
		const page = ['Framework', ' Supply', 'After the ini-', 'tial term the ofﬁce', 'renews.'];
		expect(findPassage([page], 'after the initial term\nthe office')).toEqual([{ page: 0, first: 2, last: 3 }]);
	});

	it('spans pages', () => {
		expect(
			findPassage(
				[
					['x', 'begins here'],
					['and ends there', 'y']
				],
				'Begins here and ends there.'
			)
		).toEqual([
			{ page: 0, first: 1, last: 1 },
			{ page: 1, first: 0, last: 0 }
		]);
	});

	it('finds a passage by its ends when its middle differs', () => {
		const start = 'the very first words of the passage stand here and are long enough ';
		const end = ' these are the very last words of the passage and long enough too';
		const page = ['before', start, 'a middle with a footer 7/24', end, 'after'];
		expect(findPassage([page], `${start}a middle${end}`)).toEqual([{ page: 0, first: 1, last: 3 }]);
	});

	it('finds nothing for what is not there', () => {
		expect(findPassage([['some text']], 'another sentence entirely, nowhere to be found')).toEqual([]);
		expect(findPassage([['some text']], ' – ')).toEqual([]);
	});
});
