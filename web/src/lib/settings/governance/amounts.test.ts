import { expect, test } from 'vitest';
import { centsOf, countOf, usdText } from './amounts.ts';

test('dollars are typed with a point or a comma and kept in cents', () => {
	expect(centsOf('20')).toBe(2000);
	expect(centsOf(' 0,5 ')).toBe(50);
	expect(centsOf('0.0001')).toBe(0.01);
	expect(centsOf(' ')).toBeUndefined();
	for (const wrong of ['-1', '1e3', '1.2345678', 'ten']) expect(centsOf(wrong)).toBeNaN();
	expect(usdText(1999)).toBe('19.99');
	expect(usdText(0.01)).toBe('0.0001');
});

test('counts may be grouped', () => {
	expect(countOf('1.000.000')).toBe(1_000_000);
	expect(countOf("1'500")).toBe(1500);
	expect(countOf('1 000')).toBe(1000);
	expect(countOf('')).toBeUndefined();
	for (const wrong of ['-1', 'many', '1.5', '10,00']) expect(countOf(wrong)).toBeNaN();
});
