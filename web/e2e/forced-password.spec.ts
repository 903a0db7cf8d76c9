import { baseUrl, expect, expectAccessible, expectNoOverflow, prefer, test } from './support/app.ts';

const GIVEN = 'Copper-Lantern-17';
const CHOSEN = 'Silver-Lantern-18';

test('a password that an admin chose is replaced before anything else', async ({ owner, browser, baseURL }) => {
	const email = `nora-${Date.now()}@fairbridge.example`;
	const added = await owner.page.request.post(`/api/app/members?orgId=${owner.orgId}`, {
		data: { email, name: 'Nora Falk', role: 'editor', password: GIVEN, mustChangePassword: true },
		headers: { Origin: baseUrl() }
	});
	expect(added.status(), await added.text()).toBe(201);

	const context = await browser.newContext({ baseURL });
	await prefer(context, 'dark', 'en');
	const page = await context.newPage();
	await page.goto(`/dashboard/${owner.orgId}/documents`);
	await page.getByLabel('Email', { exact: true }).fill(email);
	await page.getByLabel('Password', { exact: true }).fill(GIVEN);
	await page.keyboard.press('Enter');
	const heading = page.getByRole('heading', { level: 1, name: 'Choose another password' });
	await expect(heading).toBeVisible();
	await expect(page.getByText('Your password was set by an administrator.')).toBeVisible();
	await expectAccessible(page);
	await page.setViewportSize({ width: 320, height: 844 });
	await expectNoOverflow(page);
	await page.setViewportSize({ width: 1440, height: 900 });

	// There is no way around it, by address or by the API.
	for (const path of [`/dashboard/${owner.orgId}/chat`, '/', '/2fa-enroll', '/dashboard/create-organization']) {
		await page.goto(path);
		await expect(heading).toBeVisible();
	}
	const asked = await page.request.get(`/api/app/chat/threads?orgId=${owner.orgId}`);
	expect([asked.status(), (await asked.json()).code]).toEqual([403, 'PASSWORD_CHANGE_REQUIRED']);

	await page.getByLabel('Current password', { exact: true }).fill(GIVEN);
	await page.getByLabel('New password', { exact: true }).fill(GIVEN);
	await page.getByRole('button', { name: 'Update password' }).click();
	await expect(page.getByText('This is the password you have now. Choose another one.')).toBeVisible();
	await page.getByLabel('New password', { exact: true }).fill(CHOSEN);
	await page.keyboard.press('Enter');
	await expect(page).toHaveURL(/\/chat$/);
	await page.goto('/forced-change-password/anybody');
	await expect(page).toHaveURL(/\/chat$/);
	await context.close();
});
