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
