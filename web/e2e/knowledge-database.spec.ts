import { baseUrl, expect, expectAccessible, expectNoOverflow, prefer, test } from './support/app.ts';
import { ownDatabase, postgresThere, type OwnDatabase } from './support/database.ts';

test.skip(!postgresThere(), 'there is no Postgres of the tests (scripts/setup postgres fetches it)');
test.skip(process.env.TALE_E2E_PRIVATE_HOSTS !== '1', 'the server admits no private hosts');

let database: OwnDatabase;
test.beforeAll(() => {
	database = ownDatabase();
});
test.afterAll(() => database?.drop());

test('an organization takes its passages to a database of its own and back', async ({ owner }) => {
	const { page } = owner;
	const context = page.context();
	await prefer(context, 'light', 'en');
	const made = await context.request.post(`${baseUrl()}/api/app/organizations`, {
		data: { name: `Passages ${Date.now()}` },
		headers: { Origin: baseUrl() }
	});
	const { id: orgId } = await made.json();
	const open = (path: string) => page.goto(`/dashboard/${orgId}/${path}`);
	const upload = async (name: string) => {
		await open('documents');
		await page.getByRole('button', { name: 'Upload documents' }).first().click();
		const file = { name, mimeType: 'text/plain', buffer: Buffer.from(`The tide table of ${name}`) };
		await page.getByRole('dialog').locator('input[type=file]').setInputFiles(file);
		const row = page.getByRole('row').filter({ hasText: name.replace('.txt', '') });
		await expect(row.getByText('Indexed').filter({ visible: true }).first()).toBeVisible();
	};
	const passages = () => database.sql('SELECT body FROM private_knowledge.chunks ORDER BY body');
	await upload('older.txt');

	await open('settings/data-residency');
	const section = page.getByRole('region', { name: 'Knowledge database' });
	await expect(section).toContainText('Database of the deployment');
	await section.getByRole('button', { name: 'Connect database' }).click();
	const dialog = page.getByRole('dialog', { name: 'Connect a database' });
	await dialog.getByRole('button', { name: 'Save' }).click();
	await expect(dialog.getByText('Fill this in')).toHaveCount(4);
	await expectAccessible(page);
	await dialog.getByLabel('Host').fill(database.host);
	await dialog.getByLabel('Port').fill('database');
	await dialog.getByLabel('Database', { exact: true }).fill(database.name);
	await dialog.getByLabel('User').fill(database.user);
	await dialog.getByLabel('Password', { exact: true }).fill('wrong');
	await dialog.getByLabel('Encryption').selectOption({ label: 'Not encrypted' });
	await dialog.getByRole('button', { name: 'Test connection' }).click();
	await expect(dialog.getByText('A number from 1 to 65535')).toBeVisible();
	await dialog.getByLabel('Port').fill(database.port);
	await dialog.getByRole('button', { name: 'Test connection' }).click();
	await expect(dialog.getByText('The server refuses the user or the password')).toBeVisible();
	await expect(dialog.getByLabel('Password', { exact: true })).toHaveAttribute('aria-invalid', 'true');
	await dialog.getByLabel('Password', { exact: true }).fill(database.password);
	await dialog.getByRole('button', { name: 'Test connection' }).click();
	await expect(dialog.getByRole('alert')).toContainText('CREATE EXTENSION vector;');
	await expectAccessible(page);
	database.sql('CREATE EXTENSION vector');
	await dialog.getByRole('button', { name: 'Test connection' }).click();
	await expect(dialog.getByText('The database works.')).toBeVisible();
	await expect(dialog.getByText(/PostgreSQL \d+.*, vector \d+.*, no pg_search/)).toBeVisible();
	const shots = process.env.TALE_E2E_SHOTS;
	if (shots) await page.screenshot({ path: `${shots}/database-dialog.png` });
	await dialog.getByLabel('Password', { exact: true }).press('Enter');

	await expect(section).toContainText(database.name);
	await expect(section).toContainText(`${database.host}, port ${database.port}, user ${database.user}`);
	await expectAccessible(page);
	for (const width of [1440, 390, 320]) {
		await page.setViewportSize({ width, height: 900 });
		await expectNoOverflow(page);
		if (shots) await page.screenshot({ path: `${shots}/database-${width}.png`, fullPage: true });
	}
	await page.setViewportSize({ width: 1440, height: 900 });
	await upload('newer.txt');
	expect(passages()).toBe('The tide table of newer.txt');

	await open('settings/data-residency');
	await section.getByRole('button', { name: 'Index all documents' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Index all documents' }).click();
	await expect(page.getByRole('region', { name: 'Notices' })).toContainText('2 files are being indexed anew');
	await expect.poll(passages).toBe('The tide table of newer.txt\nThe tide table of older.txt');

	// The server refuses from now on: said here, and nothing stands in for it.
	database.sql(`ALTER ROLE ${database.user} PASSWORD 'another'`);
	database.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${database.user}'`);
	await section.getByRole('button', { name: 'Change' }).click();
	const change = page.getByRole('dialog', { name: 'Change database' });
	await expect(change.getByLabel('Password', { exact: true })).toHaveValue('');
	await change.getByRole('button', { name: 'Save' }).click();
	await expect(change.getByText('The server refuses the user or the password')).toBeVisible();
	await change.getByLabel('Password', { exact: true }).fill('another');
	await change.getByRole('button', { name: 'Save' }).click();
	await expect(change).toBeHidden();

	await section.getByRole('button', { name: 'Disconnect' }).click();
	const ask = page.getByRole('alertdialog');
	await expect(ask).toContainText('once they are indexed anew');
	await ask.getByRole('button', { name: 'Disconnect' }).click();
	await expect(section).toContainText('Database of the deployment');
	await upload('back.txt');
	expect(passages()).not.toContain('back');
});
