import { expect, expectAccessible, ORGANIZATION, OWNER, test } from './support/app.ts';

test('a new server is set up in three steps, and its owner lands in the chat', async ({ page, request }) => {
	const session = await (await request.get('/api/app/session')).json();
	test.skip(!session.setupRequired, 'this server is set up already');

	await page.goto('/');
	await expect(page.getByRole('heading', { name: 'Create the owner' })).toBeVisible();
	await expectAccessible(page);

	// Every fault is named at its field, and the first one has the focus.
	await page.getByRole('button', { name: 'Continue' }).click();
	await expect(page.getByText('Enter the name')).toBeVisible();
	await expect(page.getByLabel('Name')).toBeFocused();
	await page.getByLabel('Email').fill('maya@fairbridge');
	await page.getByLabel('Password', { exact: true }).fill('short');
	await expect(page.getByText('The address has no domain ending')).toBeVisible();
	await expect(page.getByRole('listitem').filter({ hasText: 'A lowercase letter' })).toContainText('met');
	await expectAccessible(page);

	await page.getByLabel('Name').fill(OWNER.name);
	await page.getByLabel('Email').fill(OWNER.email);
	await page.getByLabel('Password', { exact: true }).fill(OWNER.password);
	await page.getByRole('button', { name: 'Continue' }).click();

	await expect(page.getByLabel('Organization name')).toBeFocused();
	await page.getByLabel('Organization name').fill('Fairbridge & Co.');
	await page.getByRole('button', { name: 'Create organization' }).click();
	await expect(page.getByText('Only letters, digits')).toBeVisible();
	await page.getByLabel('Organization name').fill(ORGANIZATION);
	await page.getByRole('button', { name: 'Create organization' }).click();

	await expect(page.getByRole('heading', { name: 'Ready' })).toBeVisible();
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Go to Home' }).click();
	await expect(page).toHaveURL(/\/dashboard\/[^/]+\/chat$/);

	// Set-up cannot be done twice.
	await page.goto('/setup');
	await expect(page).toHaveURL(/\/chat$/);
});
