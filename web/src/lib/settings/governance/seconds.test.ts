import { expect, test } from 'vitest';
import { secondsRead, secondsText } from './seconds.ts';

test('a schedule reads back as it was written, fractions included', () => {
	expect(secondsRead('0.4, 1.5')).toEqual([400, 1500]);
	expect(secondsText([400, 1500, 600_000])).toBe('0.4, 1.5, 600');
	for (const schedule of [[1], [0, 999, 1_001], [123_456]])
		expect(secondsRead(secondsText(schedule))).toEqual(schedule);
});

test('what is no schedule is not taken for one', () => {
	for (const text of ['', ' , ', '-1', '1,x', '1e3', '9999999', Array(11).fill('1').join(',')]) {
		expect(secondsRead(text), text).toBeNull();
	}
});
