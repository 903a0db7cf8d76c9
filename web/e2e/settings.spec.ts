import {
	expect,
	expectAccessible,
	expectNoOverflow,
	prefer,
	signIn,
	test,
	type Locale,
	type Theme
} from './support/app.ts';

const PAGES = [
	'settings/account',
	'settings/personalization',
	'settings/organization',
	'settings/branding',
	'settings/teams',
	'settings/members',
	'settings/trusted-headers',
	'settings/provisioning',
	'settings/providers',
	'settings/api/rest',
	'settings/api/models',
	'settings/governance/content-models',
	'settings/governance/policies-limits',
	'settings/governance/security',
	'settings/data-residency'
];

// Colours depend on the theme, lengths on the language: three runs see every theme and every language.
for (const [theme, locale] of [
	['light', 'en'],
	['dark', 'de'],
	['light', 'fr']
] as const satisfies [Theme, Locale][]) {
	test(`settings have no accessibility fault and fit, ${theme}, ${locale}`, async ({ page, context }) => {
		// Fifteen pages, each looked at twice.
		test.slow();
		const orgId = await signIn(context);
		await prefer(context, theme, locale, orgId);
		for (const path of PAGES) {
			await page.setViewportSize({ width: 1440, height: 900 });
			await page.goto(`/dashboard/${orgId}/${path}`);
			await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
			await expect(page.locator('[aria-busy="true"], .sk')).toHaveCount(0);
			await expectAccessible(page);
			for (const width of [390, 320]) {
				await page.setViewportSize({ width, height: 844 });
				await expectNoOverflow(page);
			}
			await expectAccessible(page);
		}
	});
}

test('the name is saved from the header and reaches the rail', async ({ owner }) => {
	const { page } = owner;
	await owner.open('settings/account');
	const save = page.getByRole('button', { name: 'Save' });
	await expect(save).toBeDisabled();
	const name = page.getByLabel('Name');
	const before = await name.inputValue();
	await name.fill('Maya L. Lindqvist');
	await save.click();
	await expect(page.getByRole('button', { name: 'Saved' })).toBeDisabled();
	await expect(page.getByRole('button', { name: /account of Maya L. Lindqvist/ })).toBeVisible();
	await name.fill(before);
	await page.keyboard.press('Enter');
	await expect(page.getByRole('button', { name: new RegExp(`account of ${before}`) })).toBeVisible();
});

test('language and theme change at once, keep what is being typed, and survive a reload', async ({ page, context }) => {
	const orgId = await signIn(context);
	await page.goto(`/dashboard/${orgId}/settings/personalization`);
	await page.getByRole('combobox').selectOption('en');
	await page.goto(`/dashboard/${orgId}/settings/account`);
	await page.getByLabel('Name').fill('Unsaved');
	await page.getByRole('button', { name: /account of/ }).click();
	await page.getByRole('menuitemradio', { name: 'Deutsch' }).click();
	await expect(page.getByRole('heading', { level: 1, name: 'Konto' })).toBeVisible();
	await expect(page.getByLabel('Name')).toHaveValue('Unsaved');
	await expect(page.locator('html')).toHaveAttribute('lang', 'de');
	await page.getByRole('button', { name: /Konto von/ }).click();
	await page.getByRole('menuitemradio', { name: 'Dunkel' }).click();
	await page.reload();
	await expect(page.getByRole('heading', { level: 1, name: 'Konto' })).toBeVisible();
	await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
	await page.getByRole('button', { name: /Konto von/ }).click();
	await page.getByRole('menuitemradio', { name: 'English' }).click();
	await page.getByRole('button', { name: /account of/ }).click();
	await page.getByRole('menuitemradio', { name: 'System' }).click();
});

test('a member is added with credentials shown once, changed, disabled and removed', async ({ owner }) => {
	const { page } = owner;
	const email = `tom.${Date.now()}@fairbridge.example`;
	await owner.open('settings/members');
	await page.getByRole('button', { name: 'Add member' }).click();
	await expect(page.getByLabel('Email')).toBeFocused();
	await page.getByLabel('Email').fill(email);
	await page.getByLabel('Name').fill('Tom Okafor');
	await page.getByRole('radio', { name: 'Editor', exact: true }).check();
	await expectAccessible(page);

	// A form with something in it asks once before it goes.
	await page.keyboard.press('Escape');
	await expect(page.getByRole('alertdialog', { name: 'Discard changes?' })).toBeVisible();
	await page.getByRole('button', { name: 'Cancel' }).last().click();
	await page.getByRole('dialog').getByRole('button', { name: 'Add member' }).click();

	const hand = page.getByRole('dialog', { name: 'Hand this over now' });
	await expect(hand).toContainText(email);
	await page.keyboard.press('Escape');
	await expect(hand).toBeVisible();
	await hand.getByRole('button', { name: 'Done' }).click();

	const row = page.getByRole('row').filter({ hasText: email });
	await expect(row).toContainText('Editor');
	const actions = row.getByRole('button', { name: 'Actions for Tom Okafor' });
	await actions.click();
	await page.getByRole('menuitem', { name: 'Change role' }).click();
	await page.getByRole('radio', { name: 'Developer', exact: true }).check();
	await page.getByRole('button', { name: 'Save' }).click();
	await expect(row).toContainText('Developer');
	await expect(actions).toBeFocused();

	await page.keyboard.press('Enter');
	await page.getByRole('menuitem', { name: 'Disable' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Disable' }).click();
	await expect(row).toContainText('Disabled');

	await actions.click();
	await page.getByRole('menuitem', { name: 'Remove member' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Remove member' }).click();
	await expect(row).toHaveCount(0);
});

test('an API key is shown once and stops working when revoked', async ({ owner }) => {
	const { page, orgId } = owner;
	await owner.open('settings/api/rest');
	await page.getByRole('button', { name: 'Create key' }).first().click();
	await page.getByLabel('Name').fill('Nightly export');
	await page.getByLabel('Expires').selectOption('30');
	await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
	const secret = await page.getByLabel('API key', { exact: true }).inputValue();
	expect(secret.length).toBeGreaterThan(20);
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Done' }).click();
	await expect(page.locator('body')).not.toContainText(secret);

	await page.getByRole('button', { name: 'Revoke Nightly export' }).first().click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).click();
	await expect(page.getByRole('button', { name: 'Revoke Nightly export' })).toHaveCount(0);
	const answer = await page.request.get('/api/v1/me', { headers: { Authorization: `Bearer ${secret}` } });
	expect(answer.status()).toBe(401);
	expect(orgId).toBeTruthy();
});

test('the palette opens by keyboard, goes to a page, and gives the focus back', async ({ owner }) => {
	const { page } = owner;
	await owner.open('settings/account');
	const name = page.getByLabel('Name');
	await name.focus();
	await page.keyboard.press('Control+k');
	const field = page.getByRole('combobox', { name: 'Search' });
	await expect(field).toBeFocused();
	await expectAccessible(page);
	await page.keyboard.press('Escape');
	await expect(name).toBeFocused();
	await page.keyboard.press('Control+k');
	await field.fill('members');
	await expect(page.getByRole('option', { selected: true }).filter({ hasText: 'Members' })).toBeVisible();
	await page.keyboard.press('Enter');
	await expect(page.getByRole('heading', { level: 1, name: 'Members' })).toBeVisible();
});

test('losing the server is said, and clears by itself', async ({ owner }) => {
	const { page, context } = { ...owner, context: owner.page.context() };
	await owner.open('settings/account');
	await expect(page.getByLabel('Name')).toBeVisible();
	await context.setOffline(true);
	await expect(page.getByRole('alertdialog')).toBeVisible({ timeout: 15_000 });
	await expectAccessible(page);
	await context.setOffline(false);
	await expect(page.getByRole('alertdialog')).toHaveCount(0, { timeout: 15_000 });
	await expect(page.getByLabel('Name')).toBeVisible();
});

test('an account without a language gets the one that it is read in, and keeps it elsewhere', async ({
	owner,
	browser,
	baseURL
}) => {
	const { page, orgId } = owner;
	const stored = async () =>
		(await (await page.request.get(`/api/app/preferences?orgId=${orgId}`)).json()).locale as Locale | null;
	const answer = await page.request.put(`/api/app/preferences?orgId=${orgId}`, {
		data: { locale: null, theme: 'light', customInstructions: { enabled: null, text: '' } },
		headers: { Origin: baseURL ?? '' }
	});
	expect(answer.ok(), await answer.text()).toBe(true);
	// A browser that speaks German, in which nobody chose anything.
	const german = await browser.newContext({ baseURL, locale: 'de-CH' });
	await signIn(german);
	const visit = await german.newPage();
	await visit.goto(`/dashboard/${orgId}/settings/account`);
	await expect(visit.getByRole('heading', { level: 1, name: 'Konto' })).toBeVisible();
	await expect.poll(stored).toBe('de');
	await expectAccessible(visit);

	// It is the account's from now on, and is chosen on its page.
	await owner.open('settings/account');
	await expect(page.getByRole('heading', { level: 1, name: 'Konto' })).toBeVisible();
	await page.getByRole('combobox', { name: 'Sprache' }).selectOption('fr');
	await expect(page.getByRole('heading', { level: 1, name: 'Compte' })).toBeVisible();
	await expect.poll(stored).toBe('fr');
	await german.close();
});
