import { expect, test } from 'vitest';
import { barsOf, ticksOf } from './chart.ts';
import type { UsageGroup } from './types.ts';

const group = (key: string, requests: number) => ({ key, requests }) as UsageGroup;

test('every step between two days has a bar', () => {
	const days = barsOf([group('2026-11-30', 3)], 'requests', 'day', '2026-11-29', '2026-12-01');
	expect(days).toEqual([
		{ day: '2026-11-29', value: 0 },
		{ day: '2026-11-30', value: 3 },
		{ day: '2026-12-01', value: 0 }
	]);
	// A week is named by its Monday, also when the range begins in its middle.
	const weeks = barsOf([group('2026-11-23', 2)], 'requests', 'week', '2026-11-29', '2026-12-01');
	expect(weeks.map(({ day, value }) => [day, value])).toEqual([
		['2026-11-23', 2],
		['2026-11-30', 0]
	]);
	const months = barsOf([], 'requests', 'month', '2026-11-29', '2027-01-01');
	expect(months.map(({ day }) => day)).toEqual(['2026-11-01', '2026-12-01', '2027-01-01']);
});

test('an axis ends at a round number above its largest value', () => {
	expect(ticksOf(0, true)).toEqual([0, 1]);
	expect(ticksOf(3, true)).toEqual([0, 1, 2, 3]);
	expect(ticksOf(97, true)).toEqual([0, 25, 50, 75, 100]);
	expect(ticksOf(0.9, false).at(-1)).toBeGreaterThanOrEqual(0.9);
});
