import { expect, expectAccessible, expectNoOverflow, test } from './support/app.ts';

test('a team is made, changed and deleted, and keeps at least one member', async ({ owner, baseURL }) => {
	const { page } = owner;
	const name = `Sales ${Date.now()}`;
	await owner.open('settings/teams');
	await page.getByRole('button', { name: 'Add team' }).click();
	const dialog = page.getByRole('dialog');
	await dialog.getByLabel('Name').fill(name);
	await dialog.getByLabel('Description').fill('Who sells');
	const me = dialog.getByRole('checkbox').first();
	await expect(dialog.getByRole('checkbox', { checked: true })).toHaveCount(1);
	await expectAccessible(page);
	await dialog.getByRole('checkbox', { checked: true }).uncheck();
	await dialog.getByRole('button', { name: 'Save' }).click();
	await expect(dialog.getByText('A team keeps at least one member')).toBeVisible();
	await me.check();
	await dialog.getByRole('button', { name: 'Save' }).click();
	const row = page.getByRole('row', { name });
	await expect(row).toContainText('1 member');

	// The same name, whatever its case, is taken.
	await page.getByRole('button', { name: 'Add team' }).click();
	await dialog.getByLabel('Name').fill(name.toUpperCase());
	await dialog.getByRole('button', { name: 'Save' }).click();
	await expect(dialog.getByText('There is a team with this name already.')).toBeVisible();
	await page.keyboard.press('Escape');
	await page.getByRole('alertdialog').getByRole('button', { name: 'Discard' }).click();

	await row.getByRole('button', { name: `Actions for ${name}` }).click();
	await page.getByRole('menuitem', { name: 'Edit team' }).click();
	await expect(dialog.getByLabel('Description')).toHaveValue('Who sells');
	await dialog.getByLabel('Name').fill(`${name} North`);
	await dialog.getByRole('button', { name: 'Save' }).click();
	const renamed = page.getByRole('row', { name: `${name} North` });
	await expect(renamed).toBeVisible();
	await expectAccessible(page);

	await page.setViewportSize({ width: 390, height: 844 });
	await expectNoOverflow(page);
	await renamed.getByRole('button', { name: `Actions for ${name} North` }).click();
	const { teams } = await (await page.request.get(`/api/app/teams?orgId=${owner.orgId}`)).json();
	const team = teams.find((one: { name: string }) => one.name === `${name} North`).id;
	const key = await page.request.post(`/api/app/api-keys?orgId=${owner.orgId}`, {
		data: { name: 'of the team', expiresInDays: 1, kind: 'team', teamId: team, role: 'member' },
		headers: { Origin: baseURL ?? '' }
	});
	expect(key.ok(), await key.text()).toBe(true);
	await page.getByRole('menuitem', { name: 'Delete team' }).click();
	await expect(page.getByRole('alertdialog')).toContainText('1 API key of the team ends.');
	await expectAccessible(page);
	await page.getByRole('alertdialog').getByRole('button', { name: 'Delete team' }).click();
	await expect(renamed).toHaveCount(0);
});

test('what passwords and sign-ins must be is laid down, and an unfinished number is not saved', async ({ owner }) => {
	const { page } = owner;
	await owner.open('settings/governance/security');
	const login = page.getByRole('region', { name: 'Login attempts' });
	const attempts = login.getByLabel('Wrong passwords before the first block');
	await expect(attempts).toHaveValue('5');
	await attempts.fill('51');
	await login.getByRole('button', { name: 'Save' }).click();
	await expect(login.getByText('Must be an integer between 1 and 50.')).toBeVisible();
	await expectAccessible(page);
	await attempts.fill('7');
	await login.getByLabel('Blocks in seconds').fill('0.4, 1.5');
	await login.getByRole('button', { name: 'Save' }).click();
	await expect(login.getByRole('button', { name: 'Discard' })).toBeHidden();
	// Another field is changed: the schedule stays as exact as it was.
	await attempts.fill('5');
	await login.getByRole('button', { name: 'Save' }).click();
	await expect(login.getByRole('button', { name: 'Discard' })).toBeHidden();
	await page.reload();
	await expect(login.getByLabel('Blocks in seconds')).toHaveValue('0.4, 1.5');

	const passwords = page.getByRole('region', { name: 'Passwords' });
	await passwords.getByLabel('Fewest characters').fill('14');
	await passwords.getByLabel('A digit').uncheck();
	await passwords.getByRole('button', { name: 'Save' }).click();
	await expect(passwords.getByRole('button', { name: 'Discard' })).toBeHidden();
	await owner.open('settings/account');
	await page.getByRole('button', { name: 'Change password' }).click();
	await expect(page.getByRole('dialog')).toContainText('14');
	await owner.open('settings/governance/security');
	await passwords.getByLabel('Fewest characters').fill('12');
	await passwords.getByLabel('A digit').check();
	await passwords.getByRole('button', { name: 'Save' }).click();
	await expect(passwords.getByRole('button', { name: 'Discard' })).toBeHidden();
});

test('uploads are restricted, and a file that breaks the rule is refused in words', async ({ owner }) => {
	const { page, orgId } = owner;
	await owner.open('settings/governance/policies-limits');
	const uploads = page.getByRole('region', { name: 'Uploads' });
	await uploads.getByRole('switch', { name: 'Restrict uploads' }).click();
	await uploads.getByLabel('Blocked file endings').fill('.CSV');
	await page.keyboard.press('Enter');
	await uploads.getByLabel('Largest file in MB').fill('0.5');
	await expectAccessible(page);
	await uploads.getByRole('button', { name: 'Save' }).click();
	await expect(uploads.getByRole('button', { name: 'Discard' })).toBeHidden();
	await page.goto(`/dashboard/${orgId}/documents`);
	await page.getByRole('button', { name: 'Upload' }).first().click();
	const files = { name: 'numbers.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b') };
	await page.locator('input[type=file]').first().setInputFiles(files);
	await expect(page.getByText('This kind of file is not accepted').first()).toBeVisible();
	await owner.open('settings/governance/policies-limits');
	await uploads.getByRole('switch', { name: 'Restrict uploads' }).click();
	await uploads.getByRole('button', { name: 'Save' }).click();
	await expect(uploads.getByRole('button', { name: 'Discard' })).toBeHidden();
});

test('an owner deletes an organization after typing its name, and lands elsewhere', async ({ owner }) => {
	const { page, orgId } = owner;
	const name = `Short lived ${Date.now()}`;
	const origin = new URL(page.url() === 'about:blank' ? (process.env.TALE_BASE_URL ?? '') : page.url()).origin;
	const made = await page.request.post(`${origin}/api/app/organizations`, {
		data: { name },
		headers: { Origin: origin }
	});
	const { id } = (await made.json()) as { id: string };
	await page.goto(`/dashboard/${id}/settings/organization`);
	await page.getByRole('button', { name: 'Delete organization' }).click();
	const asks = page.getByRole('alertdialog');
	const sure = asks.getByRole('button', { name: 'Delete organization' });
	await expect(sure).toBeDisabled();
	await asks.getByLabel('Type the organization’s name').fill(name);
	await expectAccessible(page);
	await sure.click();
	await expect(page).toHaveURL(new RegExp(`/dashboard/${orgId}`));
	const left = await page.request.get(`${origin}/api/app/members?orgId=${id}`);
	expect(left.status()).toBe(403);
});
