/** The API reference: from this server alone, within its own content policy. */
import AxeBuilder from '@axe-core/playwright';
import { baseUrl, expect, test } from './support/app.ts';

test('the API reference opens without a fault and without another server', async ({ page }) => {
	const faults: string[] = [];
	page.on('console', (message) => {
		if (message.type() === 'error') faults.push(message.text());
	});
	page.on('pageerror', (error) => faults.push(error.message));
	page.on('request', (request) => {
		const url = request.url();
		if (!url.startsWith(baseUrl()) && !url.startsWith('data:')) faults.push(`asks ${url}`);
	});
	await page.goto('/docs');
	await expect(page.getByRole('heading', { name: /^Tale/ })).toBeVisible();
	// The key holder's routes come first.
	const first = page.locator('.opblock').first();
	await expect(first).toContainText('/api/v1/me');
	expect(faults).toEqual([]);

	await page.keyboard.press('Tab');
	const skip = page.getByRole('link', { name: 'Skip to main content' });
	await expect(skip).toBeFocused();
	await expect(skip).toBeInViewport();
	await page.keyboard.press('Enter');
	await page.keyboard.press('Tab');
	expect(await page.evaluate(() => document.activeElement?.closest('#reference') !== null)).toBe(true);
	// What is inside is Swagger's.
	const { violations } = await new AxeBuilder({ page }).exclude('#reference').analyze();
	expect(violations.map(({ id }) => id)).toEqual([]);

	await first.click();
	await first.getByRole('button', { name: 'Execute' }).click();
	await expect(first.locator('.live-responses-table')).toContainText('UNAUTHORIZED');
});

test('the environment reference can be read on every screen and in every language', async ({ page }) => {
	for (const [path, heading] of [
		['/docs/environment', 'Environment reference'],
		['/docs/environment/de', 'Referenz der Umgebungsvariablen'],
		['/docs/environment/fr', 'Référence des variables d’environnement']
	] as const) {
		await page.goto(path);
		await expect(page.getByRole('heading', { name: heading, level: 1 })).toBeVisible();
		await expect(page.getByRole('rowheader', { name: 'SITE_URL', exact: true })).toBeVisible();
		const { violations } = await new AxeBuilder({ page }).analyze();
		expect(violations.map(({ id }) => id)).toEqual([]);
	}
	await page.setViewportSize({ width: 320, height: 640 });
	const overflow = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
	expect(overflow).toBe(false);
});
