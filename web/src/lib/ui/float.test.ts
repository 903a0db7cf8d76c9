import { expect, test } from 'vitest';
import { place } from './float.ts';

const view = { width: 1000, height: 800 };
const box = (left: number, top: number, width: number, height: number) => ({
	left,
	top,
	right: left + width,
	bottom: top + height
});

test('it stands on the wished side, aligned as wished', () => {
	expect(
		place(box(400, 100, 40, 32), { width: 200, height: 150 }, view, { side: 'bottom', align: 'end' })
	).toMatchObject({
		left: 240,
		top: 136
	});
	expect(
		place(box(8, 700, 36, 36), { width: 200, height: 80 }, view, { side: 'right', align: 'end', offset: 12 })
	).toMatchObject({ left: 56, top: 656 });
});
test('without room it goes to the other side', () =>
	expect(place(box(400, 700, 40, 32), { width: 200, height: 150 }, view, { side: 'bottom' }).top).toBe(546));
test('it never leaves the window', () => {
	const { left } = place(box(980, 100, 16, 16), { width: 200, height: 50 }, view, { side: 'bottom', align: 'start' });
	expect(left).toBe(792);
});
test('what is taller than the room scrolls inside it', () => {
	const result = place(box(400, 500, 40, 32), { width: 200, height: 2000 }, view, { side: 'bottom' });
	expect(result.maxHeight).toBe(488);
	expect(result.top).toBe(8);
});
