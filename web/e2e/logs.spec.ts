import { readFile } from 'node:fs/promises';
import { baseUrl, expect, expectAccessible, expectNoOverflow, prefer, signIn, test } from './support/app.ts';

test('an administrator reads, filters, verifies and exports the audit log', async ({ browser, baseURL }) => {
	const context = await browser.newContext({ baseURL });
	const orgId = await signIn(context);
	await prefer(context, 'light', 'en', orgId);
	const origin = { Origin: process.env.TALE_BASE_URL ?? '' };
	const hostile = await context.request.put(`/api/app/governance/policies/budgets?orgId=${orgId}`, {
		data: { value: { enabled: false } },
		headers: origin
	});
	expect(hostile.ok(), await hostile.text()).toBe(true);
	const page = await context.newPage();
	const address = `/dashboard/${orgId}/settings/governance/logs`;

	await page.goto(`/dashboard/${orgId}/settings/governance/audit-logs?category=auth`);
	await expect(page).toHaveURL(`${address}?category=auth`);
	const table = page.getByRole('table', { name: 'Audit' });
	await expect(table.getByRole('button', { name: 'auth.signed_in' }).first()).toBeVisible();
	await expect(table.getByRole('button', { name: /^governance_policy/ })).toHaveCount(0);
	await page.getByRole('combobox', { name: 'Category' }).selectOption('Administration');
	await expect(page).toHaveURL(`${address}?category=admin`);

	const row = table.getByRole('button', { name: /^governance_policy/ }).first();
	await row.focus();
	await page.keyboard.press('Enter');
	const details = page.getByRole('dialog', { name: /^governance_policy/ });
	await expect(details.getByText('maya@fairbridge.example')).toBeVisible();
	await expect(details.getByText('Owner', { exact: true })).toBeVisible();
	await expectAccessible(page);
	await page.keyboard.press('Escape');
	await expect(details).toBeHidden();
	await expect(row).toBeFocused();

	await page.getByRole('button', { name: 'Verify' }).click();
	const check = page.getByRole('dialog', { name: 'Verify the audit log' });
	await expect(check.getByText(/Entries 1 to [\d,]+ are unchanged and complete/)).toBeVisible();
	await expectAccessible(page);
	await check.getByRole('button', { name: 'Close' }).last().click();

	await page.getByRole('combobox', { name: 'Category' }).selectOption('All categories');
	const download = page.waitForEvent('download');
	await page.getByRole('button', { name: 'Export' }).click();
	await page.getByRole('menuitem', { name: /Chain with proof/ }).click();
	const file = await download;
	expect(file.suggestedFilename()).toMatch(/^audit-logs-\d{8}-\d{6}\.jsonl$/);
	const lines = (await readFile(await file.path(), 'utf8'))
		.trim()
		.split('\n')
		.map((line) => JSON.parse(line));
	expect(lines[0].export.lastSequence).toBe(lines.length);
	expect(lines.at(-1).action).toBe('audit.exported');

	const tabs = page.getByRole('navigation', { name: 'Logs' });
	for (const [tab, content] of [
		['Sign-in blocks', 'No failed sign-ins'],
		['Activity', 'Entries of the last 7 days.'],
		// Other scenarios may have had something refused.
		['Errors', /Nothing failed|Failed|Refused/]
	] as const) {
		await tabs.getByRole('link', { name: tab }).click();
		await expect(page.getByText(content).first()).toBeVisible();
		await expectAccessible(page);
	}
	for (const width of [1440, 390]) {
		await page.setViewportSize({ width, height: 844 });
		await page.goto(address);
		await expect(table.getByRole('row').nth(1)).toBeVisible();
		await expectNoOverflow(page);
		await expectAccessible(page);
	}
	await context.close();
});

test('an admin ends the block of a member', async ({ owner, browser, baseURL }) => {
	const { page, orgId } = owner;
	const headers = { Origin: baseUrl() };
	const email = `olaf-${Date.now()}@fairbridge.example`;
	const password = 'Copper-Lantern-17';
	const added = await page.request.post(`/api/app/members?orgId=${orgId}`, {
		data: { email, name: 'Olaf Berg', role: 'member', password },
		headers
	});
	expect(added.status(), await added.text()).toBe(201);
	const stranger = await browser.newContext({ baseURL });
	for (let guess = 0; guess < 5; guess++)
		await stranger.request.post('/api/auth/sign-in/email', { data: { email, password: 'wrong' }, headers });
	await owner.open('settings/governance/logs?tab=blocks');
	const clear = page.getByRole('button', { name: `Clear the failures of ${email}: Password` }).first();
	await expect(clear).toBeVisible();
	await expectAccessible(page);
	await page.setViewportSize({ width: 320, height: 844 });
	await expectNoOverflow(page);
	await page.setViewportSize({ width: 1440, height: 900 });
	await clear.click();
	await expect(
		page.getByRole('region', { name: 'Notices' }).getByText(`The failures of ${email} are forgotten`)
	).toBeVisible();
	await expect(page.getByRole('row').filter({ hasText: email })).toHaveCount(0);
	await stranger.close();
});
