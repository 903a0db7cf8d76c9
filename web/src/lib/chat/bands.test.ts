import { describe, expect, it } from 'vitest';
import { bandOf, dayLabel, daysBetween, groupByBand, shortAge } from './bands';

const now = new Date(2024, 4, 15, 9, 30).getTime();
const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const item = (updatedAt: number, pinnedAt: number | null = null) => ({ updatedAt, pinnedAt });

describe('bands', () => {
	it('goes by calendar days, not by hours', () => {
		expect(bandOf(item(now - 9 * hour), now)).toBe('today');
		expect(bandOf(item(now - 10 * hour), now)).toBe('yesterday');
		expect(bandOf(item(now - 7 * day), now)).toBe('week');
		expect(bandOf(item(now - 8 * day), now)).toBe('earlier');
		expect(bandOf(item(now + hour), now)).toBe('today');
		expect(bandOf(item(now - 40 * day, now), now)).toBe('pinned');
	});

	it('counts days across a clock change', () => {
		const before = new Date(2024, 2, 30, 12).getTime();
		const after = new Date(2024, 3, 1, 1).getTime();
		expect(daysBetween(before, after)).toBe(2);
	});

	it('leaves empty bands out and keeps the order inside', () => {
		const groups = groupByBand([item(now), item(now - minute), item(now - 9 * day)], now);
		expect(groups.map((group) => [group.band, group.items.length])).toEqual([
			['today', 2],
			['earlier', 1]
		]);
	});
});

describe('shortAge', () => {
	it('is now, minutes, hours, days, then a date', () => {
		const age = (time: number) => shortAge(time, now, 'en', 'now');
		expect(age(now - 30_000)).toBe('now');
		expect(age(now - 5 * minute)).toBe('5m');
		expect(age(now - 3 * hour)).toBe('3h');
		expect(age(now - 2 * day)).toBe('2d');
		expect(age(now - 9 * day)).toBe('May 6');
		expect(age(now - 300 * day)).toBe('Jul 2023');
	});

	it('follows the locale', () => {
		expect(shortAge(now - 9 * day, now, 'de', 'jetzt')).toBe('6. Mai');
	});
});

describe('dayLabel', () => {
	it('names today and yesterday', () => {
		const words = { today: 'Today', yesterday: 'Yesterday' };
		expect(dayLabel(now, now, 'en', words)).toBe('Today');
		expect(dayLabel(now - day, now, 'en', words)).toBe('Yesterday');
		expect(dayLabel(now - 3 * day, now, 'en', words)).toBe('Sunday, May 12');
	});
});
