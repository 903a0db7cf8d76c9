/**
 * The shades of an accent colour. Buttons keep the colour itself, with black or white text on it, whichever is readable.
 * Text and marks stand on the page: there the colour is darkened or lightened, as little as their contrast needs, for
 * each theme by itself.
 */

/** Contrast that WCAG 2.1 AA asks of text, and of marks that stand for themselves. */
export const TEXT = 4.5;
export const MARK = 3;

type Rgb = readonly [number, number, number];

const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];

/** What the accent stands on: page, muted, elevated, hovered and selected surfaces, as in `tokens.css`. */
export const SURFACES: Record<'light' | 'dark', readonly string[]> = {
	light: ['#ffffff', '#f9fafb', '#f3f4f6', '#eceef1'],
	dark: ['#0a0a0a', '#121212', '#171717', '#262626', '#303030']
};

/** What a sample of a theme needs beside the accent, as in `tokens.css`: a page shows the tokens of its own theme only. */
export const SAMPLE: Record<'light' | 'dark', Record<string, string>> = {
	light: {
		'--bg': '#ffffff',
		'--text': '#030712',
		'--text-subtle': '#6b7280',
		'--border': '#e5e7eb',
		'--fill-track': '#e5e7eb'
	},
	dark: {
		'--bg': '#0a0a0a',
		'--text': '#f5f5f5',
		'--text-subtle': '#a3a3a3',
		'--border': '#2a2a2a',
		'--fill-track': '#3a3a3a'
	}
};

/** The shades for one theme. */
export interface Shades {
	/** Filled controls, and the text on them. */
	fill: string;
	hover: string;
	onFill: string;
	/** Switches, progress, dots, the focus ring, and what is drawn on them. */
	mark: string;
	onMark: string;
	text: string;
	tint: string;
}

export const isHex = (text: string): boolean => /^#[0-9a-f]{6}$/i.test(text);

function rgb(hex: string): Rgb {
	const value = Number.parseInt(hex.slice(1), 16);
	return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

const hex = (color: Rgb): string => `#${color.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`;

/** `share` of the way from one colour to another. */
function mix([r, g, b]: Rgb, to: Rgb, share: number): Rgb {
	const between = (from: number, end: number) => Math.round(from + (end - from) * share);
	return [between(r, to[0]), between(g, to[1]), between(b, to[2])];
}

function luminance(color: Rgb): number {
	const [r, g, b] = color.map((part) => {
		const value = part / 255;
		return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
	}) as [number, number, number];
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function ratio(one: Rgb, other: Rgb): number {
	const [a, b] = [luminance(one), luminance(other)];
	return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

/** The contrast of two colours by WCAG, 1 to 21. */
export const contrast = (one: string, other: string): number => ratio(rgb(one), rgb(other));

/** `color` moved towards `to` until it stands out from every one of `surfaces`, and no further. */
function readable(color: Rgb, to: Rgb, surfaces: readonly Rgb[], wanted: number): Rgb {
	const STEPS = 100;
	for (let step = 0; step < STEPS; step += 1) {
		const shade = mix(color, to, step / STEPS);
		if (surfaces.every((surface) => ratio(shade, surface) >= wanted)) return shade;
	}
	return to;
}

/** Black or white, whichever can be read; white when both can. */
const textOn = (fill: Rgb): Rgb => (ratio(WHITE, fill) >= TEXT ? WHITE : BLACK);

/** The shades of a colour of six digits in one theme. */
export function shadesOf(color: string, theme: 'light' | 'dark'): Shades {
	const accent = rgb(color);
	const surfaces = SURFACES[theme].map(rgb);
	const page = surfaces[0] ?? WHITE;
	const away = theme === 'light' ? BLACK : WHITE;
	const onFill = textOn(accent);
	const mark = readable(accent, away, surfaces, MARK);
	const tint = mix(page, accent, theme === 'light' ? 0.09 : 0.2);
	return {
		fill: hex(accent),
		// Away from the text, so that it is read even better.
		hover: hex(mix(accent, onFill === WHITE ? BLACK : WHITE, 0.14)),
		onFill: hex(onFill),
		mark: hex(mark),
		onMark: hex(ratio(WHITE, mark) >= MARK ? WHITE : BLACK),
		text: hex(readable(accent, away, [...surfaces, tint], TEXT)),
		tint: hex(tint)
	};
}

const VARIABLES: readonly [string, keyof Shades][] = [
	['--accent', 'fill'],
	['--accent-hover', 'hover'],
	['--on-accent', 'onFill'],
	['--accent-mark', 'mark'],
	['--on-accent-mark', 'onMark'],
	['--accent-text', 'text'],
	['--accent-tint', 'tint'],
	['--focus', 'mark']
];

/** The names of the tokens that an accent colour replaces. */
export const TOKENS: readonly string[] = VARIABLES.map(([name]) => name);

/** Everything that a sample of a theme is drawn with, as a style. */
export function sampleOf(color: string, theme: 'light' | 'dark'): string {
	const shades = shadesOf(color, theme);
	const accent = VARIABLES.map(([name, shade]): [string, string] => [name, shades[shade]]);
	return [...Object.entries(SAMPLE[theme]), ...accent].map(([name, value]) => `${name}: ${value}`).join('; ');
}

/** The tokens of `tokens.css` for an accent colour. */
export function tokensOf(color: string): Record<string, string> {
	const [light, dark] = [shadesOf(color, 'light'), shadesOf(color, 'dark')];
	return Object.fromEntries(VARIABLES.map(([name, shade]) => [name, `light-dark(${light[shade]}, ${dark[shade]})`]));
}
