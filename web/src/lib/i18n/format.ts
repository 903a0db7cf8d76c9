/** Numbers, sizes, dates and ages in the interface language. All take epoch milliseconds, as the server sends them. */
import { locale } from './locale.svelte.ts';

const DAY = 86_400_000;

/** The reader's own region of the interface language (`de-AT`, `en-US`) where the browser names one. */
function region(): string {
	const regional = navigator.languages.find((tag) => tag.includes('-') && tag.split('-')[0] === locale.current);
	return regional ?? (locale.current === 'en' ? 'en-GB' : locale.current);
}

/** A whole or decimal number with the language's separators. */
export function formatNumber(value: number, options?: Intl.NumberFormatOptions): string {
	return new Intl.NumberFormat(region(), options).format(value);
}

/** A share between 0 and 1 as a percentage without decimals. */
export function formatPercent(share: number): string {
	return formatNumber(share, { style: 'percent', maximumFractionDigits: 0 });
}

/** Bytes with a decimal unit: `412 kB`, `3.1 MB`. */
export function formatBytes(bytes: number): string {
	const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const;
	const step = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
	const value = bytes / 1000 ** step;
	return formatNumber(value, {
		style: 'unit',
		unit: units[step],
		unitDisplay: 'short',
		maximumFractionDigits: step === 0 || value >= 100 ? 0 : 1
	});
}

/** A calendar date: `14 Oct 2025`. */
export function formatDate(at: number): string {
	return new Intl.DateTimeFormat(region(), { dateStyle: 'medium' }).format(at);
}

/** Date and time of day. */
export function formatDateTime(at: number): string {
	return new Intl.DateTimeFormat(region(), { dateStyle: 'medium', timeStyle: 'short' }).format(at);
}

/** Time of day only. */
export function formatTime(at: number): string {
	return new Intl.DateTimeFormat(region(), { timeStyle: 'short' }).format(at);
}

/** Whole days between two instants by the local calendar: 0 today, 1 yesterday. */
export function daysAgo(at: number, now: number): number {
	const start = (t: number) => new Date(t).setHours(0, 0, 0, 0);
	return Math.round((start(now) - start(at)) / DAY);
}

/** The day in words where one exists (`today`, `yesterday`), else the date. */
export function formatDay(at: number, now = Date.now()): string {
	const days = daysAgo(at, now);
	if (days === 0 || days === 1) {
		return new Intl.RelativeTimeFormat(region(), { numeric: 'auto' }).format(-days, 'day');
	}
	return formatDate(at);
}

/** Distance to an instant in one unit: `4 min. ago`, `in 3 days`. */
export function formatRelative(at: number, now = Date.now()): string {
	const format = new Intl.RelativeTimeFormat(region(), { numeric: 'auto', style: 'short' });
	const seconds = Math.round((at - now) / 1000);
	const size = Math.abs(seconds);
	if (size < 60) return format.format(0, 'second');
	if (size < 3600) return format.format(Math.trunc(seconds / 60), 'minute');
	if (size < 86_400) return format.format(Math.trunc(seconds / 3600), 'hour');
	if (size < 30 * 86_400) return format.format(Math.trunc(seconds / 86_400), 'day');
	return formatDate(at);
}

/** The shortest age for a list row: `4m`, `3h`, `6d`, in the language's narrow units. */
export function formatAge(at: number, now = Date.now()): string {
	const seconds = Math.max(0, Math.round((now - at) / 1000));
	const unit = (value: number, name: string) =>
		formatNumber(value, { style: 'unit', unit: name, unitDisplay: 'narrow' });
	if (seconds < 60)
		return new Intl.RelativeTimeFormat(region(), { numeric: 'auto', style: 'narrow' }).format(0, 'second');
	if (seconds < 3600) return unit(Math.floor(seconds / 60), 'minute');
	if (seconds < 86_400) return unit(Math.floor(seconds / 3600), 'hour');
	if (seconds < 365 * 86_400) return unit(Math.floor(seconds / 86_400), 'day');
	return formatDate(at);
}

/** Several names joined as the language does: `Maya, Tom and Ada`. */
export function formatList(items: string[], type: 'conjunction' | 'disjunction' = 'conjunction'): string {
	return new Intl.ListFormat(region(), { type, style: 'long' }).format(items);
}
