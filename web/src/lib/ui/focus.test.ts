import { afterEach, expect, test, vi } from 'vitest';
import { handFocus } from './focus.ts';

afterEach(() => vi.unstubAllGlobals());

test('the focus is handed on from a control that went away, and left alone elsewhere', () => {
	const [body, pressed, other] = [{}, {}, {}] as [Element, Element, Element];
	const focus = vi.fn();
	const to = { focus } as unknown as HTMLElement;
	for (const [activeElement, times] of [
		[body, 1],
		[null, 1],
		[pressed, 1],
		[other, 0]
	] as const) {
		focus.mockClear();
		vi.stubGlobal('document', { activeElement, body });
		handFocus(pressed, to);
		expect(focus).toHaveBeenCalledTimes(times);
	}
	handFocus(pressed, null);
});
