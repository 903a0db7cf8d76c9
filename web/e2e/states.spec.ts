/** Every page says what failed and starts again by itself or at a press; what floats closes one by one. */
import type { Page } from '@playwright/test';
import { expect, expectAccessible, test } from './support/app.ts';
import { seed } from './support/seed.ts';

test.beforeEach(async ({ context, owner }) => void (await seed(context, owner.orgId)));

const PAGES: [path: string, api: RegExp, title: string][] = [
	['chat', /\/api\/app\/chat\/threads\?.*archived=false/, 'Your chats couldn’t be loaded'],
	['documents', /\/api\/app\/documents\?/, 'Documents couldn’t be loaded'],
	['settings/members', /\/api\/app\/members\?/, 'The members couldn’t be loaded'],
	['settings/branding', /\/api\/app\/branding\?/, 'The branding couldn’t be loaded'],
	['settings/providers', /\/api\/app\/providers\?/, 'The AI providers couldn’t be loaded'],
	['settings/api/rest', /\/api\/app\/api-keys\?/, 'The API keys couldn’t be loaded'],
	['settings/data-residency', /\/api\/app\/knowledge\/embedding\?/, 'The embedding model couldn’t be loaded'],
	[
		'settings/data-residency#storage',
		/\/api\/app\/object-storage\/connection\?/,
		'The object storage couldn’t be loaded'
	],
	['settings/personalization', /\/api\/app\/preferences\?/, 'The preferences couldn’t be loaded']
];

for (const [path, api, title] of PAGES) {
	test(`${path} says that it couldn’t be loaded, and loads at a press`, async ({ owner: { page, open } }) => {
		const problem = { error: 'broken on purpose', code: 'INTERNAL', requestId: 'req_on_purpose' };
		const headers = { 'x-request-id': problem.requestId };
		await page.route(api, (route) => route.fulfill({ status: 500, json: problem, headers }));
		await open(path);
		const alert = page.getByRole('alert').filter({ hasText: title });
		await expect(alert).toBeVisible();
		await expect(alert).not.toContainText(problem.error);
		await expect(alert.getByRole('button', { name: /req_on_purpose|request id/i })).toBeVisible();
		await expectAccessible(page);
		await page.unroute(api);
		await alert.getByRole('button', { name: 'Try again' }).click();
		await expect(alert).toBeHidden();
	});
}

test('a part of the app that does not arrive is asked for again, by itself and then at a press', async ({
	owner: { page, open }
}) => {
	const part = /\/_app\/immutable\/entry\/app/;
	let asked = 0;
	await page.route(part, (route) => (asked++ < 1 ? route.abort() : route.continue()));
	await open('documents');
	await expect(page.getByRole('table', { name: 'Documents' })).toBeVisible();
	expect(asked).toBe(2);
	await page.unroute(part);
	// Lost until it is said: whether the first loss is one of the preload or of the import decides how often it is asked for.
	await page.route(part, (route) => route.abort());
	await page.reload();
	const failed = page.getByRole('alert').filter({ hasText: 'Tale couldn’t be loaded' });
	await expect(failed).toBeVisible();
	await expectAccessible(page);
	await page.unroute(part);
	await failed.getByRole('button', { name: 'Try again' }).click();
	await expect(page.getByRole('table', { name: 'Documents' })).toBeVisible();
});

test('a gateway without a server behind it is an outage, not an error of the page', async ({
	owner: { page, open }
}) => {
	await open('chat');
	const box = page.getByRole('textbox', { name: 'Message' });
	await box.fill('Kept through the outage');
	const gateway = { status: 503, contentType: 'text/html', body: '<h1>Service unavailable</h1>' };
	await page.route(/\/api\//, (route) => route.fulfill(gateway));
	await page.getByRole('navigation', { name: 'Main navigation' }).getByRole('link', { name: 'Knowledge' }).click();
	const overlay = page.getByRole('alertdialog', { name: 'Can’t reach Tale' });
	await expect(overlay).toBeVisible({ timeout: 15_000 });
	await expectAccessible(page);
	await page.unroute(/\/api\//);
	await expect(overlay).toBeHidden({ timeout: 15_000 });
	await expect(page.getByRole('table', { name: 'Documents' })).toBeVisible();
	await page.goBack();
	await expect(box).toHaveValue('Kept through the outage');
	await box.fill('');
});

test('Escape closes what is on top and nothing else', async ({ owner: { page, open } }) => {
	await open('documents');
	const name = page.getByRole('table', { name: 'Documents' }).locator('tbody tr td.name button').first();
	await name.click();
	const pane = page.getByRole('complementary', { name: 'Document preview' });
	await expect(pane).toBeVisible();
	await page.keyboard.press('Control+k');
	const palette = page.getByRole('combobox', { name: 'Search' });
	await expect(palette).toBeFocused();
	await page.keyboard.press('Escape');
	await expect(palette).toBeHidden();
	await expect(pane).toBeVisible();
	await page.keyboard.press('Escape');
	await expect(pane).toBeHidden();
	await expect(name).toBeFocused();
});

test('nothing glides for people who asked for less motion', async ({ owner: { page, open } }) => {
	const moves = (of: Page) =>
		of.evaluate(() => {
			const pills = [...document.querySelectorAll('nav.rail, nav .list')];
			return pills.map((pill) => parseFloat(getComputedStyle(pill, '::before').transitionDuration));
		});
	await page.emulateMedia({ reducedMotion: 'reduce' });
	await open('chat');
	await page.getByRole('navigation', { name: 'Home' }).locator('a[data-row]').last().click();
	await expect(page.getByRole('article').first()).toBeVisible();
	for (const seconds of await moves(page)) expect(seconds).toBeLessThan(0.001);
});
