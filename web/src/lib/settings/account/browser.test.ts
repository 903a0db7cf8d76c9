import { expect, test } from 'vitest';
import { browserName } from './browser.ts';

test('browser and system are named', () => {
	expect(browserName('Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/148.0.0.0 Safari/537.36')).toBe(
		'Chrome, Linux'
	);
	expect(browserName('Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Mobile Safari/604.1')).toBe(
		'Safari, iPhone'
	);
	expect(browserName('Mozilla/5.0 (Windows NT 10.0) Chrome/148 Safari/537 Edg/148')).toBe('Edge, Windows');
});
test('what says nothing stays unnamed', () => {
	expect(browserName('curl/8.1')).toBeNull();
	expect(browserName(null)).toBeNull();
});
