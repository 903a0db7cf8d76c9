// Runs before the first paint: theme, language and the outline of the page that is about to appear.
(() => {
	const root = document.documentElement;
	try {
		const theme = localStorage.getItem('tale.theme');
		if (theme === 'light' || theme === 'dark') root.dataset.theme = theme;
		const locale = localStorage.getItem('tale.locale');
		if (locale) root.lang = locale;
	} catch {
		// Storage can be blocked; the system's theme and the browser's language stand.
	}
	const path = location.pathname;
	if (/\/dashboard\/[^/]{16,}/.test(path)) {
		root.dataset.boot = /\/(chat|home|settings)(\/|$)/.test(path) ? 'panel' : 'rail';
	}
})();
