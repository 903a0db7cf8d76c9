import { expect, expectAccessible, test } from './support/app.ts';
import { DIMENSIONS, KEY, REFUSAL, startVendor } from './support/vendor.ts';

test.skip(() => !process.env.TALE_E2E_PRIVATE_HOSTS, 'the server must allow private provider hosts');

test('a provider of one’s own is read, tested with its own words, used for embeddings, and deleted', async ({
	owner
}) => {
	const { page } = owner;
	const vendor = await startVendor();
	try {
		await owner.open('settings/providers');
		await page.getByRole('button', { name: 'Add credential' }).first().click();
		await expect(page.getByRole('searchbox', { name: 'Search providers' })).toBeFocused();
		await expectAccessible(page);
		await page.getByRole('button', { name: /^Custom provider/ }).click();

		const dialog = page.getByRole('dialog', { name: 'Custom provider' });
		await dialog.getByLabel('Name').fill('Leeds GPU server');
		await dialog.getByLabel('Base URL').fill(vendor.url);
		await dialog.getByLabel('API key').fill('sk-wrong-000000000000');
		await dialog.getByRole('button', { name: 'Read models' }).click();
		await expect(dialog.getByRole('alert')).toContainText('The list couldn’t be read.');
		await dialog.getByRole('button', { name: 'Add provider' }).click();
		await expect(dialog.getByText('Name at least one model')).toBeVisible();
		await dialog.getByLabel('Model id').fill('leeds-chat');
		await page.keyboard.press('Enter');
		await expectAccessible(page);
		await dialog.getByRole('button', { name: 'Add provider' }).click();

		// The test runs by itself, and says what the vendor said.
		const added = page.getByRole('dialog', { name: 'Added' });
		await expect(added).toContainText('refused with status 401');
		await expect(added).toContainText(REFUSAL);
		await expectAccessible(page);
		await added.getByRole('button', { name: 'Done' }).click();

		const row = page.getByRole('row').filter({ hasText: 'Leeds GPU server' });
		await row.getByRole('button', { name: /^Actions for/ }).click();
		await page.getByRole('menuitem', { name: 'Edit provider' }).click();
		const edit = page.getByRole('dialog', { name: 'Edit provider' });
		await edit.getByLabel('API key').fill(KEY);
		await edit.getByRole('button', { name: 'Read models' }).click();
		await expect(edit).toContainText('The server lists 2 models.');
		await edit.getByLabel('Purpose of leeds-embedding').selectOption('Embedding');
		await edit.getByRole('button', { name: 'Save' }).click();
		await expect(added).toContainText('leeds-chat answered');
		await expect(added).toContainText('Hello from Leeds.');
		await added.getByRole('button', { name: 'Done' }).click();

		await owner.open('settings/data-residency');
		await page.getByRole('button', { name: 'Choose embedding model' }).click();
		const choose = page.getByRole('dialog', { name: 'Choose embedding model' });
		await choose.getByLabel('Provider').selectOption('Leeds GPU server');
		await choose.getByLabel('Model').selectOption('leeds-embedding');
		await choose.getByLabel('Dimensions').fill(String(DIMENSIONS));
		await expectAccessible(page);
		await choose.getByRole('button', { name: 'Save' }).click();
		await expect(page.getByText(`Leeds GPU server, ${DIMENSIONS} dimensions`)).toBeVisible();
		await expectAccessible(page);
		await page.getByRole('button', { name: 'Remove', exact: true }).click();
		await page.getByRole('alertdialog').getByRole('button', { name: 'Remove embedding model' }).click();
		await expect(page.getByText('No embedding model', { exact: true })).toBeVisible();

		await owner.open('settings/providers');
		await row.getByRole('button', { name: /^Actions for/ }).click();
		await page.getByRole('menuitem', { name: 'Delete provider' }).click();
		await page.getByRole('alertdialog').getByRole('button', { name: 'Delete provider' }).click();
		await expect(row).toHaveCount(0);
	} finally {
		vendor.stop();
	}
});

test('a shipped provider takes a key, which is tested, replaced and erased', async ({ owner }) => {
	const { page } = owner;
	await owner.open('settings/providers');
	await page.getByRole('button', { name: 'Add credential' }).first().click();
	await page.getByRole('button', { name: /^DeepSeek/ }).click();
	const dialog = page.getByRole('dialog', { name: 'Add credential' });
	await dialog.getByRole('button', { name: 'Add and test' }).click();
	await expect(dialog.getByText('Enter the API key')).toBeVisible();
	await dialog.getByLabel('API key', { exact: true }).last().fill('sk-000000000000000000');
	await expectAccessible(page);
	await dialog.getByRole('button', { name: 'Add and test' }).click();
	await page.getByRole('dialog', { name: 'Added' }).getByRole('button', { name: 'Done' }).click();

	const row = page.getByRole('row').filter({ hasText: 'DeepSeek' });
	await expect(row).toContainText('Default');
	const actions = row.getByRole('button', { name: /^Actions for/ });
	await actions.click();
	await page.getByRole('menuitem', { name: 'Edit credential' }).click();
	const edit = page.getByRole('dialog', { name: 'Edit credential' });
	await edit.getByRole('button', { name: 'Replace key' }).click();
	await edit.getByLabel('New API key').fill('sk-111111111111111111');
	await expectAccessible(page);
	await edit.getByRole('button', { name: 'Save' }).click();
	await expect(edit).toHaveCount(0);

	await actions.click();
	await page.getByRole('menuitem', { name: 'Disable' }).click();
	await expect(row).toContainText('Disabled');
	await actions.click();
	await page.getByRole('menuitem', { name: 'Delete credential' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Delete credential' }).click();
	await expect(row).toHaveCount(0);
});

test('a list that a server keeps is refreshed and checked, and extra fields go with every request', async ({
	owner
}) => {
	const { page } = owner;
	const vendor = await startVendor();
	try {
		await owner.open('settings/providers');
		await page.getByRole('button', { name: 'Add credential' }).first().click();
		await page.getByRole('button', { name: /^Custom provider/ }).click();
		const dialog = page.getByRole('dialog', { name: 'Custom provider' });
		await dialog.getByLabel('Name').fill('York GPU server');
		await dialog.getByLabel('Base URL').fill(vendor.url);
		await dialog.getByLabel('API key').fill(KEY);
		await dialog.getByRole('radio', { name: /^From the server/ }).check();

		// Closed until it is wanted; wrong words keep it open and say what to do.
		const extra = dialog.getByLabel('Extra request fields');
		await expect(extra).toBeHidden();
		await dialog.getByText('Advanced', { exact: true }).click();
		await extra.fill('flex');
		await dialog.getByRole('button', { name: 'Add provider' }).click();
		await expect(dialog.getByText('This is not a JSON object.')).toBeVisible();
		await extra.fill('{ "model": "other" }');
		await dialog.getByRole('button', { name: 'Add provider' }).click();
		await expect(dialog.getByText('model cannot be set here')).toBeVisible();
		await extra.fill('{ "service_tier": "flex" }');
		await expectAccessible(page);
		await dialog.getByRole('button', { name: 'Add provider' }).click();
		const added = page.getByRole('dialog', { name: 'Added' });
		await expect(added).toContainText('Hello from Leeds.');
		expect(vendor.asked.at(-1)).toMatchObject({ service_tier: 'flex' });
		await added.getByRole('button', { name: 'Done' }).click();

		const lists = page.getByRole('region', { name: 'Model lists' });
		const line = lists.getByRole('listitem').filter({ hasText: 'York GPU server' });
		await expect(line).toContainText('2 models');
		vendor.models.push('leeds-large');
		await lists.getByRole('button', { name: 'Refresh catalogs' }).click();
		await expect(line).toContainText('3 models');
		await expect(lists.getByRole('status')).toContainText('York GPU server: 3 models');
		await expectAccessible(page);

		const row = page.getByRole('row').filter({ hasText: 'York GPU server' });
		await row.getByRole('button', { name: /^Actions for/ }).click();
		await page.getByRole('menuitem', { name: 'Check models' }).click();
		const check = page.getByRole('dialog', { name: 'Check models' });
		await expect(check).toContainText('3 models');
		await expectAccessible(page);
		await check.getByRole('button', { name: 'Done' }).click();

		vendor.stop();
		await lists.getByRole('button', { name: 'Refresh catalogs' }).click();
		await expect(line).toContainText('The list could not be read');
		await row.getByRole('button', { name: /^Actions for/ }).click();
		await page.getByRole('menuitem', { name: 'Delete provider' }).click();
		await page.getByRole('alertdialog').getByRole('button', { name: 'Delete provider' }).click();
		await expect(row).toHaveCount(0);
	} finally {
		vendor.stop();
	}
});
