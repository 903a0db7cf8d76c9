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
	try {
		// The colour that the organization had at the last visit (lib/branding/apply.ts).
		const { org, tokens } = JSON.parse(localStorage.getItem('tale.brand') ?? '{}');
		if (org && path.includes(`/dashboard/${org}`)) {
			for (const [token, value] of Object.entries(tokens)) root.style.setProperty(token, value);
		}
	} catch {
		// Whatever stands there is no colour.
	}
	if (/\/dashboard\/[^/]{16,}/.test(path)) {
		root.dataset.boot = /\/(chat|home|settings)(\/|$)/.test(path) ? 'panel' : 'rail';
	}

	// A part of the app that did not arrive leaves an empty page: it is loaded once more by itself, then at a press.
	const texts = {
		en: ['Tale couldn’t be loaded. Check your connection.', 'Try again'],
		de: ['Tale konnte nicht geladen werden. Prüfen Sie Ihre Verbindung.', 'Erneut versuchen'],
		fr: ['Tale n’a pas pu être chargé. Vérifiez votre connexion.', 'Réessayer']
	};
	const failed = () => {
		const outline = document.getElementById('boot');
		if (!outline || document.getElementById('boot-failed')) return;
		const now = Date.now();
		try {
			const last = Number(sessionStorage.getItem('tale.reloaded'));
			if (now - last > 30_000) {
				sessionStorage.setItem('tale.reloaded', String(now));
				setTimeout(() => location.reload(), 500);
				return;
			}
		} catch {
			// Without storage nobody can tell the first failure from the tenth.
		}
		const [text, label] = texts[root.lang.slice(0, 2)] ?? texts.en;
		const message = document.createElement('div');
		message.id = 'boot-failed';
		message.setAttribute('role', 'alert');
		const button = document.createElement('button');
		button.textContent = label;
		button.addEventListener('click', () => location.reload());
		message.append(text, button);
		outline.after(message);
	};
	addEventListener('unhandledrejection', failed);
})();
