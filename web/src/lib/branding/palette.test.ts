import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { contrast, isHex, MARK, SAMPLE, shadesOf, SURFACES, TEXT, TOKENS, tokensOf } from './palette.ts';

/** Every ninth step of each channel, the corners included. */
const levels = ['00', '1b', '36', '51', '6c', '87', 'a2', 'bd', 'd8', 'ff'];
const colors = levels.flatMap((r) => levels.flatMap((g) => levels.map((b) => `#${r}${g}${b}`)));
const themes = ['light', 'dark'] as const;

describe('the shades of an accent colour', () => {
	it('can be read in both themes, whatever the colour', () => {
		for (const color of colors) {
			for (const theme of themes) {
				const shades = shadesOf(color, theme);
				const where = `${color} ${theme} ${JSON.stringify(shades)}`;
				expect(contrast(shades.onFill, shades.fill), where).toBeGreaterThanOrEqual(TEXT);
				expect(contrast(shades.onFill, shades.hover), where).toBeGreaterThanOrEqual(TEXT);
				expect(contrast(shades.onMark, shades.mark), where).toBeGreaterThanOrEqual(MARK);
				expect(contrast(shades.text, shades.tint), where).toBeGreaterThanOrEqual(TEXT);
				for (const surface of SURFACES[theme]) {
					expect(contrast(shades.mark, surface), where).toBeGreaterThanOrEqual(MARK);
					expect(contrast(shades.text, surface), where).toBeGreaterThanOrEqual(TEXT);
				}
			}
		}
	});

	it('keep what is readable as it is', () => {
		for (const color of colors) expect(shadesOf(color, 'light').fill).toBe(color);
		const navy = shadesOf('#1e3a8a', 'light');
		expect([navy.mark, navy.text, navy.onFill]).toEqual(['#1e3a8a', '#1e3a8a', '#ffffff']);
		expect(shadesOf('#1e3a8a', 'dark').mark).not.toBe('#1e3a8a');
		const yellow = shadesOf('#ffe600', 'dark');
		expect([yellow.mark, yellow.text, yellow.onFill]).toEqual(['#ffe600', '#ffe600', '#000000']);
		expect(shadesOf('#ffe600', 'light').text).not.toBe('#ffe600');
	});

	it('stand on the surfaces that the tokens declare', () => {
		const css = readFileSync(new URL('../../tokens.css', import.meta.url), 'utf8');
		for (const name of ['--bg', '--bg-muted', '--bg-elevated', '--fill-hover', '--fill-selected']) {
			const [, light = '', dark = ''] = new RegExp(`\\s${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(css) ?? [];
			expect(SURFACES.light, name).toContain(light);
			expect(SURFACES.dark, name).toContain(dark);
		}
		for (const theme of ['light', 'dark'] as const) {
			for (const [name, value] of Object.entries(SAMPLE[theme])) {
				const [, light, dark] = new RegExp(`\\s${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(css) ?? [];
				expect({ light, dark }[theme], name).toBe(value);
			}
		}
		for (const token of TOKENS) expect(css).toContain(`\t${token}:`.trim());
	});

	it('replace tokens with one value for each theme', () => {
		const tokens = tokensOf('#ffe600');
		expect(Object.keys(tokens)).toEqual([...TOKENS]);
		expect(tokens['--accent']).toBe('light-dark(#ffe600, #ffe600)');
	});
});

it('a colour has six digits', () => {
	for (const text of ['#056cff', '#ABCDEF']) expect(isHex(text)).toBe(true);
	for (const text of ['', '#', '#05', '#056cf', '056cff', '#056cff0', '#05gcff', 'red'])
		expect(isHex(text)).toBe(false);
});
