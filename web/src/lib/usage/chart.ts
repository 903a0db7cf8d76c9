/** The geometry of a bar chart over time. */
import type { Metric, Step, UsageGroup } from './types.ts';

const DAY = 86_400_000;

export interface Bar {
	/** The first day of the step, as the server names it. */
	day: string;
	value: number;
}

/** The first day of the step that a day lies in. */
function stepOf(at: number, step: Step): number {
	const date = new Date(at);
	if (step === 'week') return at - ((date.getUTCDay() + 6) % 7) * DAY;
	if (step === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
	return at;
}

function next(at: number, step: Step): number {
	const date = new Date(at);
	if (step === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
	return at + (step === 'week' ? 7 : 1) * DAY;
}

/** A bar for every step between two days, also for those in which nothing was used. */
export function barsOf(groups: readonly UsageGroup[], metric: Metric, step: Step, from: string, to: string): Bar[] {
	const known = new Map(groups.map((group) => [group.key, group[metric]]));
	const bars: Bar[] = [];
	const last = Date.parse(to);
	for (let at = stepOf(Date.parse(from), step); at <= last; at = next(at, step)) {
		const day = new Date(at).toISOString().slice(0, 10);
		bars.push({ day, value: known.get(day) ?? 0 });
	}
	return bars;
}

/** The end of the axis and its lines: round numbers above the largest value. */
export function ticksOf(largest: number, whole: boolean): number[] {
	if (largest <= 0) return [0, 1];
	const rough = largest / 4;
	const power = 10 ** Math.floor(Math.log10(rough));
	const factor = [1, 2, 2.5, 5, 10].find((step) => step * power >= rough) ?? 10;
	const step = whole ? Math.max(1, Math.ceil(factor * power)) : factor * power;
	const ticks = [0];
	while (ticks[ticks.length - 1]! < largest) ticks.push(ticks.length * step);
	return ticks;
}
