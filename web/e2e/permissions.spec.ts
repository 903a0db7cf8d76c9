import { expect, expectAccessible, ORGANIZATION, prefer, signIn, test } from './support/app.ts';

const PASSWORD = 'Harbour-lantern-42';

test('a member sees their own settings only, and every other page says why it is closed', async ({
	browser,
	baseURL
}) => {
	const email = `ruth.${Date.now()}@fairbridge.example`;
	const owner = await browser.newContext({ baseURL });
	const orgId = await signIn(owner);
	const added = await owner.request.post(`/api/app/members?orgId=${orgId}`, {
		data: { name: 'Ruth Vogt', email, role: 'member', password: PASSWORD },
		headers: { Origin: baseURL ?? '' }
	});
	expect(added.status()).toBe(201);

	const context = await browser.newContext({ baseURL });
	await prefer(context, 'light', 'en');
	const page = await context.newPage();
	await page.goto('/');
	await page.getByLabel('Email').fill(email);
	await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
	await page.keyboard.press('Enter');
	await expect(page).toHaveURL(`/dashboard/${orgId}/chat`);

	await page.getByRole('link', { name: 'Settings' }).click();
	await expect(page.getByRole('heading', { level: 1, name: 'Account' })).toBeVisible();
	const panel = page.getByRole('navigation', { name: 'Settings' });
	await expect(panel.getByRole('link')).toHaveText(['Account', 'Preferences', 'Notifications', 'Usage']);

	for (const [path, title] of [
		['organization', 'Organization'],
		['members', 'Members'],
		['branding', 'Branding'],
		['trusted-headers', 'Trusted headers'],
		['provisioning', 'Provisioning'],
		['providers', 'AI providers'],
		['metrics/usage', 'Usage'],
		['governance/content-models', 'Governance · Content & Models'],
		['governance/policies-limits', 'Governance · Policies & Limits'],
		['governance/competences', 'Governance · Competences'],
		['api/rest', 'API keys'],
		['data-residency', 'Data residency']
	]) {
		await page.goto(`/dashboard/${orgId}/settings/${path}`);
		await expect(page.getByRole('heading', { level: 2, name: `You can’t open ${title}` })).toBeVisible();
		await expect(page.getByRole('button', { name: /^(Add|Create|Save)/ })).toHaveCount(0);
		await expectAccessible(page);
	}

	// A role that grows is noticed without a reload.
	await page.goto(`/dashboard/${orgId}/settings/providers`);
	const members = await (await owner.request.get(`/api/app/members?orgId=${orgId}`)).json();
	const { userId } = members.members.find((member: { email: string }) => member.email === email);
	await owner.request.patch(`/api/app/members/${userId}?orgId=${orgId}`, {
		data: { role: 'developer' },
		headers: { Origin: baseURL ?? '' }
	});
	await expect(panel.getByRole('link', { name: 'AI providers' })).toBeVisible();
	await expect(page.getByRole('button', { name: 'Add credential' }).first()).toBeVisible();
	await expect(page).toHaveTitle(`AI providers - ${ORGANIZATION}`);
	await owner.close();
	await context.close();
});

test('a member is granted the competence to call models, and loses it again', async ({ browser, baseURL }) => {
	const email = `noor.${Date.now()}@fairbridge.example`;
	const owner = await browser.newContext({ baseURL });
	const orgId = await signIn(owner);
	const added = await owner.request.post(`/api/app/members?orgId=${orgId}`, {
		data: { name: 'Noor Haddad', email, role: 'member', password: PASSWORD },
		headers: { Origin: baseURL ?? '' }
	});
	expect(added.status()).toBe(201);
	await prefer(owner, 'light', 'en', orgId);
	const register = await owner.newPage();
	await register.goto(`/dashboard/${orgId}/settings/governance/competences`);
	await expect(register.getByText('No competence is granted')).toBeVisible();

	const context = await browser.newContext({ baseURL });
	await prefer(context, 'light', 'en');
	const page = await context.newPage();
	await page.goto('/');
	await page.getByLabel('Email').fill(email);
	await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
	await page.keyboard.press('Enter');
	await expect(page).toHaveURL(`/dashboard/${orgId}/chat`);
	await page.goto(`/dashboard/${orgId}/settings/api/models`);
	await expect(page.getByRole('heading', { level: 2, name: /You can’t open/ })).toBeVisible();

	await register.getByRole('button', { name: 'Grant a competence' }).click();
	const dialog = register.getByRole('dialog');
	await dialog.getByRole('button', { name: 'Grant a competence' }).click();
	await expect(dialog.getByText('Choose who gets it')).toBeVisible();
	await dialog.getByLabel('Member').selectOption({ label: `Noor Haddad (${email})` });
	await dialog.getByLabel('Ends').selectOption('30');
	await expectAccessible(register);
	await dialog.getByRole('button', { name: 'Grant a competence' }).click();
	const row = register.getByRole('row', { name: /Noor Haddad/ });
	await expect(row).toContainText('Call models over the API');
	await expectAccessible(register);

	// The page opens under the member’s hands, and closes again.
	await expect(page.getByRole('heading', { level: 1, name: 'Model endpoints' })).toBeVisible();
	await expect(page.getByRole('heading', { level: 2, name: /You can’t open/ })).toHaveCount(0);
	await row.getByRole('button', { name: /^Revoke/ }).click();
	await register.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).click();
	await expect(register.getByText('No competence is granted')).toBeVisible();
	await register.getByText('Revoked', { exact: true }).click();
	await expect(register.getByRole('row', { name: /Noor Haddad/ })).toContainText('Revoked on');
	await expect(page.getByRole('heading', { level: 2, name: /You can’t open/ })).toBeVisible();
	await owner.close();
	await context.close();
});
