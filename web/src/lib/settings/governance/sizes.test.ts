import { expect, test } from 'vitest';
import { GB, MB, sizeRead, sizeText, typeSizesRead, typeSizesText } from './sizes.ts';

test('sizes read back as they were written, and nothing is no limit', () => {
	expect(sizeRead('0,5', MB)).toBe(MB / 2);
	expect(sizeText(3 * GB, GB)).toBe('3');
	expect([sizeRead(' ', MB), sizeText(0, MB)]).toEqual([0, '']);
	for (const wrong of ['-1', 'x', '1 2']) expect(sizeRead(wrong, MB), wrong).toBeNaN();
	for (const bytes of [1, 12_345, 7 * MB + 1]) expect(sizeRead(sizeText(bytes, MB), MB)).toBe(bytes);
});

test('sizes of types read back, and one that is no size is told', () => {
	const limits = [
		{ mimeTypePrefix: 'image/', maxBytes: 5 * MB },
		{ mimeTypePrefix: 'video/mp4', maxBytes: MB / 2 }
	];
	expect(typeSizesRead(typeSizesText(limits))).toEqual(limits);
	expect(typeSizesRead('image/')[0]?.maxBytes).toBeNaN();
	expect(typeSizesRead(' ,')).toEqual([]);
});
