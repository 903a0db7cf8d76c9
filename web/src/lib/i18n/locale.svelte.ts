/**
 * The interface language. Messages and formatters read `locale.current`, which is reactive: changing it re-renders every
 * text at once and keeps unsaved work, because nothing is mounted anew.
 */
import { extractLocaleFromNavigator, isLocale, overwriteGetLocale, type Locale } from '#lib/paraglide/runtime.js';

export type { Locale };

const STORAGE_KEY = 'tale.locale';

/** Languages in the order menus show them, each under its own name. */
export const LOCALES: readonly { code: Locale; name: string }[] = [
	{ code: 'en', name: 'English' },
	{ code: 'de', name: 'Deutsch' },
	{ code: 'fr', name: 'Français' }
];

function stored(): Locale | undefined {
	try {
		const value = localStorage.getItem(STORAGE_KEY);
		return value && isLocale(value) ? value : undefined;
	} catch {
		return undefined;
	}
}

class CurrentLocale {
	current = $state<Locale>(stored() ?? extractLocaleFromNavigator() ?? 'en');

	/** Shows the interface in `locale` and remembers it in this browser. */
	set(locale: Locale): void {
		this.current = locale;
		document.documentElement.lang = locale;
		try {
			localStorage.setItem(STORAGE_KEY, locale);
		} catch {
			// Without storage the choice lasts until the tab is closed.
		}
	}
}

export const locale = new CurrentLocale();
overwriteGetLocale(() => locale.current);
if (typeof document !== 'undefined') document.documentElement.lang = locale.current;
