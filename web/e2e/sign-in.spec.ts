import {
	expect,
	expectAccessible,
	expectNoOverflow,
	OWNER,
	prefer,
	signIn,
	test,
	type Locale,
	type Theme
} from './support/app.ts';

const TITLES: Record<Locale, string> = { en: 'Log in', de: 'Anmelden', fr: 'Se connecter' };

for (const locale of ['en', 'de', 'fr'] as const satisfies Locale[]) {
	for (const theme of ['light', 'dark'] as const satisfies Theme[]) {
		test(`sign-in has no accessibility fault and fits, ${locale}, ${theme}`, async ({ page, context }) => {
			await prefer(context, theme, locale);
			await page.goto('/log-in');
			await expect(page.getByRole('heading', { level: 1, name: TITLES[locale] })).toBeVisible();
			await expectAccessible(page);
			await page.setViewportSize({ width: 320, height: 640 });
			await expectNoOverflow(page);
		});
	}
}

test('a deep link opened while signed out is kept through sign-in', async ({ page, context }) => {
	await prefer(context, 'light', 'en');
	const orgId = await signIn(context);
	await context.clearCookies();
	await page.goto(`/dashboard/${orgId}/settings/organization`);
	await expect(page).toHaveURL(/\/log-in\?next=/);

	await page.keyboard.press('Tab');
	await page.getByLabel('Email').fill(OWNER.email);
	await page.getByLabel('Password', { exact: true }).fill('not the password');
	await page.keyboard.press('Enter');
	await expect(page.getByRole('alert')).toHaveText('Wrong email or password');
	await expect(page).toHaveURL(/\/log-in\?next=/);
	await expectAccessible(page);

	await page.getByLabel('Password', { exact: true }).fill(OWNER.password);
	await page.keyboard.press('Enter');
	await expect(page).toHaveURL(`/dashboard/${orgId}/settings/organization`);
	await expect(page.getByRole('heading', { level: 1, name: 'Organization' })).toBeVisible();
});

test('signing out asks, and Back shows nothing of what was there', async ({ owner }) => {
	const { page } = owner;
	await owner.open('settings/account');
	const menu = page.getByRole('button', { name: new RegExp(`account of ${OWNER.name}`) });
	await menu.click();
	await page.getByRole('menuitem', { name: 'Log out' }).click();
	await page.getByRole('button', { name: 'Cancel' }).click();
	await expect(menu).toBeFocused();

	await menu.click();
	await page.getByRole('menuitem', { name: 'Log out' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Log out' }).click();
	await expect(page).toHaveURL(/\/log-in$/);
	await page.goBack();
	await expect(page).toHaveURL(/\/log-in/);
});

test('unknown addresses say so, outside and inside the dashboard', async ({ owner }) => {
	const { page } = owner;
	await page.goto('/no-such-page');
	await expect(page.getByRole('heading', { level: 1, name: 'Page not found' })).toBeVisible();
	await expect(page).toHaveTitle(/Page not found/);
	await owner.open('no-such-page');
	await expect(page.getByRole('heading', { level: 1, name: 'Page not found' })).toBeVisible();
	await expect(page.getByRole('navigation', { name: 'Main navigation' })).toBeVisible();
	await expectAccessible(page);
});
