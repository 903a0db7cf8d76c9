import { expect, test } from 'vitest';
import { Selection } from './selection.svelte.ts';

const ROWS = ['a', 'b', 'c', 'd', 'e'];
const ticked = (selection: Selection) => [...selection.ids].sort().join('');

test('a range takes the state of the row it ends at, in both directions', () => {
	const selection = new Selection();
	selection.pick('d', ROWS, false);
	selection.pick('b', ROWS, true);
	expect(ticked(selection)).toBe('bcd');
	selection.pick('c', ROWS, true);
	expect(ticked(selection), 'an unticked end unticks the range').toBe('d');
});
test('a range without a beginning is one row', () => {
	const selection = new Selection();
	selection.pick('c', ROWS, true);
	expect(ticked(selection)).toBe('c');
});
test('a beginning that is gone makes no range', () => {
	const selection = new Selection();
	selection.pick('a', ROWS, false);
	selection.pick('d', ROWS.slice(1), true);
	expect(ticked(selection)).toBe('ad');
});
test('all ticks what is missing, and clears when nothing is', () => {
	const selection = new Selection();
	selection.pick('b', ROWS, false);
	selection.all(ROWS);
	expect(ticked(selection)).toBe('abcde');
	selection.all(ROWS);
	expect(ticked(selection)).toBe('');
});
test('rows that are gone are forgotten, the others stay ticked', () => {
	const selection = new Selection();
	selection.all(ROWS);
	selection.keep(['e', 'b', 'x']);
	expect(ticked(selection)).toBe('be');
});
