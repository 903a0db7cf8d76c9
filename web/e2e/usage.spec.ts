import type { BrowserContext } from '@playwright/test';
import { expect, expectAccessible, expectNoOverflow, prefer, signIn, test } from './support/app.ts';
import { ask, seed } from './support/seed.ts';

/** Lays the organization's limits down. */
async function limit(context: BrowserContext, orgId: string, rules: object[]): Promise<void> {
	const answer = await context.request.put(`/api/app/governance/policies/budgets?orgId=${orgId}`, {
		data: { value: { enabled: true, rules } },
		headers: { Origin: process.env.TALE_BASE_URL ?? '' }
	});
	expect(answer.ok(), await answer.text()).toBe(true);
}

test('an administrator sees what was used, and a person whose limit is reached sees that and when it resets', async ({
	browser,
	baseURL
}) => {
	const context = await browser.newContext({ baseURL });
	const orgId = await signIn(context);
	await prefer(context, 'light', 'en', orgId);
	await limit(context, orgId, []);
	const page = await context.newPage();
	const box = page.getByRole('textbox', { name: 'Message' });
	const own = `/dashboard/${orgId}/settings/usage`;

	await page.goto(own);
	await expect(page.getByRole('heading', { name: 'No limits' })).toBeVisible();

	await seed(context, orgId);
	await ask(context, orgId, 'How often is the pump serviced?', 'The pump');
	await page.goto(`/dashboard/${orgId}/settings/metrics/usage`);
	const people = page.getByRole('table', { name: 'Usage by person' });
	await expect(people.getByRole('button', { name: 'Maya Lindqvist' })).toBeVisible();
	await expect(page.getByRole('img', { name: 'Cost over time' })).toBeVisible();
	await page.getByText('Requests', { exact: true }).nth(1).click();
	await page.getByText('Show as a table').click();
	await expect(page.getByRole('table', { name: 'Requests over time' }).getByRole('row')).toHaveCount(31);
	await page.getByRole('table', { name: 'Top assistants' }).getByRole('button', { name: 'Chat', exact: true }).click();
	const chip = page.getByRole('button', { name: 'Remove the filter Chat' });
	await expect(chip).toBeVisible();
	await expectAccessible(page);
	await chip.click();
	await expect(chip).toBeHidden();
	const download = page.waitForEvent('download');
	await page.getByRole('link', { name: 'Export CSV' }).click();
	expect((await download).suggestedFilename()).toMatch(/^usage-.*\.csv$/);

	const answer = await context.request.get(`/api/app/usage?orgId=${orgId}&groupBy=day`);
	const used: number = (await answer.json()).totals.requests;
	await limit(context, orgId, [
		{ scope: 'default', period: 'monthly', maxRequests: used + 1, warningThresholdPercent: 1 },
		{ scope: 'org', period: 'daily', maxTokens: 5_000_000 }
	]);
	await page.goto(`/dashboard/${orgId}/chat`);
	const banner = page.getByRole('main').getByRole('alert').filter({ hasText: 'Your limit of' });
	await expect(banner).toContainText('has 1 request left');
	await limit(context, orgId, [{ scope: 'default', period: 'monthly', maxRequests: used }]);
	await box.fill('And the other one?');
	await page.keyboard.press('Enter');
	await expect(banner).toContainText('is reached. It resets on');
	await expect(box).toHaveValue('And the other one?');
	await expectAccessible(page);

	await banner.getByRole('link', { name: 'View usage' }).click();
	await expect(page).toHaveURL(own);
	await expect(page.getByRole('meter', { name: 'Requests per month' })).toHaveAttribute('aria-valuenow', '100');
	await expect(page.getByText('Limit reached')).toBeVisible();
	for (const width of [1440, 390]) {
		await page.setViewportSize({ width, height: 844 });
		await expectNoOverflow(page);
		await expectAccessible(page);
	}
	await limit(context, orgId, []);
	await context.close();
});
