/** Schedules of blocks: milliseconds in the policy, seconds with fractions on the page. */

const MAX_STEPS = 10;
const MAX_MS = 30 * 24 * 3_600 * 1_000;

/** `[400, 1500]` → `0.4, 1.5`. */
export const secondsText = (schedule: readonly number[]): string => schedule.map((ms) => String(ms / 1_000)).join(', ');

/** `0.4, 1.5` → `[400, 1500]`; null when it is no schedule. */
export function secondsRead(text: string): number[] | null {
	const parts = text.split(/[,;\s]+/).filter(Boolean);
	if (parts.length === 0 || parts.length > MAX_STEPS) return null;
	const schedule = parts.map((part) => (/^\d+(\.\d+)?$/.test(part) ? Math.round(Number(part) * 1_000) : Number.NaN));
	return schedule.every((ms) => ms >= 0 && ms <= MAX_MS) ? schedule : null;
}
