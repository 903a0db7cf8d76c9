/** Days as a date field writes them, by the calendar of whoever looks at it. */

const two = (part: number) => String(part).padStart(2, '0');

/** The day that is `days` after the one of `now`, as `2026-12-31`. */
export function daysFrom(days: number, now = new Date()): string {
	const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() + days);
	return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

/** The last moment of a day, in epoch milliseconds; `null` for a text that is none. */
export function endOfDay(text: string): number | null {
	const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
	if (!parts) return null;
	const [year, month, day] = parts.slice(1).map(Number) as [number, number, number];
	const end = new Date(year, month - 1, day, 23, 59, 59, 999);
	return end.getMonth() === month - 1 && end.getDate() === day ? end.getTime() : null;
}
