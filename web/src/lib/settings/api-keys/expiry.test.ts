import { describe, expect, it } from 'vitest';
import { daysFrom, endOfDay } from './expiry.ts';

describe('the days of a key', () => {
	it('counts days by the calendar, over ends of months and years', () => {
		const now = new Date(2027, 11, 31, 23, 30);
		expect(daysFrom(0, now)).toBe('2027-12-31');
		expect(daysFrom(1, now)).toBe('2028-01-01');
		expect(daysFrom(60, now)).toBe('2028-02-29');
	});

	it('ends a day with its last moment', () => {
		const end = new Date(endOfDay('2028-02-29') ?? 0);
		expect([end.getFullYear(), end.getMonth(), end.getDate()]).toEqual([2028, 1, 29]);
		expect([end.getHours(), end.getMinutes(), end.getMilliseconds()]).toEqual([23, 59, 999]);
	});

	it.each(['', '2027-02-29', '2027-13-01', '2027-00-10', 'tomorrow', '2027-1-1'])('refuses %s', (text) => {
		expect(endOfDay(text)).toBeNull();
	});
});
