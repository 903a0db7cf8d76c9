import { expect, expectAccessible, prefer, test } from './support/app.ts';

test('a reverse proxy hands a person over, and the form waits when it may not', async ({ owner, browser, baseURL }) => {
	const { page } = owner;
	await owner.open('settings/trusted-headers');
	const enabled = page.getByRole('switch', { name: 'Let a reverse proxy sign people in' });
	await expect(enabled).not.toBeChecked();
	await enabled.click();
	await expect(enabled).toBeChecked();
	await page.getByLabel('Highest role').selectOption('editor');
	await page.getByRole('button', { name: 'Create key' }).click();
	await page.getByLabel('Name', { exact: true }).fill('portal');
	await page.keyboard.press('Enter');
	const secret = await page.getByLabel('Key of the proxy').inputValue();
	expect(secret).toMatch(/^tale_h_/);
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Done' }).click();
	await expect(page.getByRole('row', { name: /portal/ })).toContainText(secret.slice(0, 12));
	await expect(page.locator('body')).not.toContainText(secret);

	const email = `zoe.${Date.now()}@fairbridge.example`;
	const behind = await browser.newContext({
		baseURL,
		extraHTTPHeaders: {
			'Remote-Email': email,
			'Remote-Name': 'Zoe Adler',
			'Remote-Role': 'admin',
			'Remote-Internal-Secret': secret
		}
	});
	await prefer(behind, 'light', 'en');
	const visitor = await behind.newPage();
	await visitor.goto(`/dashboard/${owner.orgId}/documents`);
	await expect(visitor.getByRole('heading', { level: 1, name: 'Knowledge' })).toBeVisible();
	const account = visitor.getByRole('button', { name: /account of Zoe Adler/ });
	await expect(account).toBeVisible();

	// Who logs out stays out until they ask.
	await account.click();
	await visitor.getByRole('menuitem', { name: 'Log out' }).click();
	await visitor.getByRole('alertdialog').getByRole('button', { name: 'Log out' }).click();
	await expect(visitor).toHaveURL(/\/log-in$/);
	const again = visitor.getByRole('button', { name: 'Log in through your organization' });
	await expect(again).toBeVisible();
	await expectAccessible(visitor);
	await again.click();
	await expect(account).toBeVisible();

	await page.getByRole('button', { name: 'Revoke portal' }).click();
	const revoking = page.getByRole('alertdialog');
	await revoking.getByRole('checkbox', { name: 'Also end the sessions that it began' }).check();
	await expectAccessible(page);
	await revoking.getByRole('button', { name: 'Revoke' }).click();
	await expect(page.getByText('No keys yet')).toBeVisible();
	const session = await visitor.request.get('/api/app/session');
	expect((await session.json()).user).toBeNull();
	await behind.clearCookies();
	const later = await behind.newPage();
	await later.goto('/');
	await expect(later).toHaveURL(/\/log-in\?trusted_headers_error=refused/);
	await expect(later.getByRole('alert')).toContainText('was refused');
	await expectAccessible(later);
	await later.getByRole('button', { name: 'Log in through your organization' }).click();
	await expect(later).toHaveURL(/\/log-in\?trusted_headers_error=refused/);
	await behind.close();

	const members = await (await page.request.get(`/api/app/members?orgId=${owner.orgId}`)).json();
	expect(members.members.find((one: { email: string }) => one.email === email).role).toBe('editor');
	await enabled.click();
	await expect(enabled).not.toBeChecked();
});
