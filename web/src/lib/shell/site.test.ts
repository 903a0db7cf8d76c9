import { afterEach, expect, test, vi } from 'vitest';

vi.mock('$app/paths', () => ({ resolve: (path: string) => `/app${path}` }));
const { outward, siteAddress, supportHref } = await import('./site.ts');
const { paths, safeNext } = await import('./paths.ts');

/** The page as the server filled it. */
function page(written: Record<string, string>): void {
	const content = (selector: string) => written[/tale-(\w+)/.exec(selector)?.[1] ?? ''];
	vi.stubGlobal('document', {
		querySelector: (selector: string) => {
			const found = content(selector);
			return found === undefined ? null : { content: found };
		}
	});
	vi.stubGlobal('location', { origin: 'http://localhost:3000' });
}

afterEach(() => vi.unstubAllGlobals());

test('addresses for others begin with the origin and name the base path once', () => {
	page({ address: 'https://a.example/app' });
	expect(siteAddress()).toBe('https://a.example/app');
	expect(outward(paths.logIn())).toBe('https://a.example/app/log-in');
	page({});
	expect(outward(paths.logIn())).toBe('http://localhost:3000/app/log-in');
});
test('the support link carries the real organization once, after what the operator wrote', () => {
	page({ support: 'https://help.example/?organizationId=x&a=1' });
	expect(supportHref('org-1')).toBe('https://help.example/?a=1&organizationId=org-1');
	page({ support: 'https://help.example/' });
	expect(supportHref('org-1')).toBe('https://help.example/?organizationId=org-1');
	expect(supportHref()).toBe('https://help.example/');
	page({});
	expect(supportHref()).toBe('https://tale.dev/contact');
});
test('only addresses below the base path may follow sign-in', () => {
	expect(safeNext('/app/dashboard/o/chat')).toBe('/app/dashboard/o/chat');
	for (const bad of ['/dashboard/o/chat', '/application', '//app/x', 'https://evil.example/app/', '/app/log-in'])
		expect(safeNext(bad)).toBeUndefined();
});
