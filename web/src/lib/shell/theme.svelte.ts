/** Light, dark, or as the system says. Applied before the first paint by `static/boot.js`. */
export type Theme = 'system' | 'light' | 'dark';

const STORAGE_KEY = 'tale.theme';

function stored(): Theme {
	try {
		const value = localStorage.getItem(STORAGE_KEY);
		return value === 'light' || value === 'dark' ? value : 'system';
	} catch {
		return 'system';
	}
}

class CurrentTheme {
	current = $state<Theme>(stored());

	set(theme: Theme): void {
		this.current = theme;
		const root = document.documentElement;
		if (theme === 'system') delete root.dataset.theme;
		else root.dataset.theme = theme;
		try {
			localStorage.setItem(STORAGE_KEY, theme);
		} catch {
			// Without storage the choice lasts until the tab is closed.
		}
	}
}

export const theme = new CurrentTheme();
