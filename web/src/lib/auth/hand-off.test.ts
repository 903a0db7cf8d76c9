import { expect, test } from 'vitest';
import { mayStart } from './hand-off.ts';

test('a hand-off starts once, and again after a minute', () => {
	expect(mayStart(null, 1_000)).toBe(true);
	expect(mayStart('1000', 2_000)).toBe(false);
	expect(mayStart('1000', 61_000)).toBe(true);
});

test('who logged out stays out', () => {
	expect(mayStart('held', 1e12)).toBe(false);
});

test('a clock that went back holds nobody up', () => {
	expect(mayStart('90000', 1_000)).toBe(true);
});
