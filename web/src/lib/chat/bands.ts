/** The date bands of the Home list and the short ages at the end of its rows. */

export type Band = 'pinned' | 'today' | 'yesterday' | 'week' | 'earlier';

export const BANDS: readonly Band[] = ['pinned', 'today', 'yesterday', 'week', 'earlier'];

const DAY = 86_400_000;

function startOfDay(time: number): number {
	return new Date(time).setHours(0, 0, 0, 0);
}

/** Whole calendar days between two moments in local time; daylight saving does not shift it. */
export function daysBetween(earlier: number, later: number): number {
	return Math.round((startOfDay(later) - startOfDay(earlier)) / DAY);
}

export function bandOf(item: { pinnedAt: number | null; updatedAt: number }, now: number): Band {
	if (item.pinnedAt !== null) return 'pinned';
	const days = daysBetween(item.updatedAt, now);
	if (days <= 0) return 'today';
	if (days === 1) return 'yesterday';
	return days <= 7 ? 'week' : 'earlier';
}

/** Groups items, which come newest first, under their bands; empty bands are left out. */
export function groupByBand<T extends { pinnedAt: number | null; updatedAt: number }>(
	items: readonly T[],
	now: number
): { band: Band; items: T[] }[] {
	const groups = new Map<Band, T[]>();
	for (const item of items) {
		const band = bandOf(item, now);
		const group = groups.get(band);
		if (group) group.push(item);
		else groups.set(band, [item]);
	}
	return BANDS.flatMap((band) => {
		const group = groups.get(band);
		return group ? [{ band, items: group }] : [];
	});
}

/**
 * The age of a row in the locale's narrow form: now, 5m, 3h, 2d, then the date after a week.
 * `nowLabel` is the word for less than a minute.
 */
export function shortAge(time: number, now: number, locale: string, nowLabel: string): string {
	const minutes = Math.floor((now - time) / 60_000);
	if (minutes < 1) return nowLabel;
	if (minutes < 60) return unit(minutes, 'minute', locale);
	if (minutes < 24 * 60) return unit(Math.floor(minutes / 60), 'hour', locale);
	const days = Math.floor(minutes / (24 * 60));
	if (days < 7) return unit(days, 'day', locale);
	const sameYear = new Date(time).getFullYear() === new Date(now).getFullYear();
	return formatter(locale, sameYear ? { day: 'numeric', month: 'short' } : { month: 'short', year: 'numeric' }).format(
		time
	);
}

const numbers = new Map<string, Intl.NumberFormat>();
const dates = new Map<string, Intl.DateTimeFormat>();

function unit(value: number, name: 'minute' | 'hour' | 'day', locale: string): string {
	const key = locale + name;
	let format = numbers.get(key);
	if (!format) {
		format = new Intl.NumberFormat(locale, { style: 'unit', unit: name, unitDisplay: 'narrow' });
		numbers.set(key, format);
	}
	// German separates with a space ("5 Min."): in a 12 px column a narrow no-break space is enough.
	return format.format(value).replace(/\s/g, '\u202f');
}

function formatter(locale: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
	const key = locale + JSON.stringify(options);
	let format = dates.get(key);
	if (!format) {
		format = new Intl.DateTimeFormat(locale, options);
		dates.set(key, format);
	}
	return format;
}

/** The day of a message for its pill: a word for today and yesterday, otherwise the date. */
export function dayLabel(
	time: number,
	now: number,
	locale: string,
	words: { today: string; yesterday: string }
): string {
	const days = daysBetween(time, now);
	if (days <= 0) return words.today;
	if (days === 1) return words.yesterday;
	const sameYear = new Date(time).getFullYear() === new Date(now).getFullYear();
	return formatter(
		locale,
		sameYear ? { weekday: 'long', day: 'numeric', month: 'long' } : { day: 'numeric', month: 'long', year: 'numeric' }
	).format(time);
}
