/** Shows the app as an organization looks: its colour, and its icon in the tab. `static/boot.js` knows the colour by then. */
import type { PublishedBranding } from '#lib/api/types.ts';
import { base } from '#lib/shell/paths.ts';
import { TOKENS, tokensOf } from './palette.ts';

const STORAGE_KEY = 'tale.brand';

/** Shows a branding; `null` is how Tale looks by itself. Answers the tokens that it replaced. */
export function show(branding: PublishedBranding | null): Record<string, string> | null {
	// Browsers without it keep Tale's colour rather than none.
	const able = CSS.supports('color', 'light-dark(#000, #fff)');
	const tokens = able && branding?.accentColor ? tokensOf(branding.accentColor) : null;
	const { style } = document.documentElement;
	for (const token of TOKENS) {
		if (tokens) style.setProperty(token, tokens[token] ?? '');
		else style.removeProperty(token);
	}
	showIcon('light', branding?.faviconLight ?? null);
	showIcon('dark', branding?.faviconDark ?? null);
	return tokens;
}

/** Shows how an open organization looks, and remembers its colour for the next visit. */
export function applyBranding(orgId: string, branding: PublishedBranding | null): void {
	const tokens = show(branding);
	try {
		// One organization is remembered: the next visit begins with its colour.
		if (tokens) localStorage.setItem(STORAGE_KEY, JSON.stringify({ org: orgId, tokens }));
		else localStorage.removeItem(STORAGE_KEY);
	} catch {
		// Without storage a page begins with Tale's own colour.
	}
}

/** Replaces the icon of browsers with that theme; Tale's own is left in the page and stands when there is none. */
function showIcon(theme: 'light' | 'dark', path: string | null): void {
	const id = `icon-${theme}`;
	const known = document.getElementById(id);
	if (!path) {
		known?.remove();
		return;
	}
	const link = known instanceof HTMLLinkElement ? known : document.createElement('link');
	link.id = id;
	link.rel = 'icon';
	link.media = `(prefers-color-scheme: ${theme})`;
	link.href = base + path;
	if (!known) document.head.append(link);
}
