import { baseUrl, expect, expectAccessible, expectNoOverflow, prefer, test } from './support/app.ts';
import { BUCKET, seaweedThere, startSeaweed, type Seaweed } from './support/seaweed.ts';

test.skip(!seaweedThere(), 'the program `weed` is not there (scripts/setup test fetches it)');
test.skip(process.env.TALE_E2E_PRIVATE_HOSTS !== '1', 'the server admits no private hosts');

let seaweed: Seaweed;
test.beforeAll(async () => {
	seaweed = await startSeaweed();
});
test.afterAll(() => seaweed?.stop());

test('an organization takes its files to a bucket of its own and back', async ({ owner }) => {
	const { page } = owner;
	const context = page.context();
	await prefer(context, 'light', 'en');
	const headers = { Origin: baseUrl() };
	const made = await context.request.post(`${baseUrl()}/api/app/organizations`, {
		data: { name: `Residency ${Date.now()}` },
		headers
	});
	const { id: orgId } = await made.json();
	const open = (path: string) => page.goto(`/dashboard/${orgId}/${path}`);
	const upload = async (name: string) => {
		await open('documents');
		await page.getByRole('button', { name: 'Upload documents' }).first().click();
		const put = page.waitForRequest((request) => request.method() === 'PUT');
		const file = { name, mimeType: 'text/plain', buffer: Buffer.from(`The tide table of ${name}`) };
		await page.getByRole('dialog').locator('input[type=file]').setInputFiles(file);
		const to = new URL((await put).url());
		await expect(
			page
				.getByRole('row')
				.filter({ hasText: name.replace('.txt', '') })
				.first()
		).toBeVisible();
		await expect(page.getByRole('heading', { name: '1 file uploaded' })).toBeVisible();
		return to;
	};
	const before = await upload('older.txt');
	expect(before.pathname).not.toContain(BUCKET.name);

	await open('settings/data-residency');
	const section = page.getByRole('region', { name: 'Object storage' });
	await expect(section).toContainText('Object store of the deployment');
	await section.getByRole('button', { name: 'Connect bucket' }).click();
	const dialog = page.getByRole('dialog', { name: 'Connect a bucket' });
	await dialog.getByRole('button', { name: 'Save' }).click();
	await expect(dialog.getByText('Fill this in')).toHaveCount(4);
	await expectAccessible(page);
	await dialog.getByLabel('Endpoint').fill(seaweed.closed);
	await dialog.getByLabel('Region').fill('us-east-1');
	await dialog.getByLabel('Bucket', { exact: true }).fill('not-there');
	await dialog.getByLabel('Access key ID').fill(BUCKET.accessKey);
	await dialog.getByLabel('Secret access key').fill('wrong');
	await dialog.getByRole('button', { name: 'Test connection' }).click();
	await expect(dialog.getByRole('alert')).toBeVisible();
	await dialog.getByLabel('Secret access key').fill(BUCKET.secretKey);
	await dialog.getByLabel('Bucket', { exact: true }).fill(BUCKET.name);
	await dialog.getByLabel('Prefix').fill('tale');
	await dialog.getByRole('button', { name: 'Test connection' }).click();
	await expect(dialog.getByText('The bucket works')).toBeVisible();
	await dialog.getByLabel('Prefix').press('Enter');

	// The page loads again, because it may not reach the new bucket before, and tries an upload by itself.
	await expect(section).toContainText(`${BUCKET.name} / tale`);
	await expect(section).toContainText('its CORS policy doesn’t admit this site');
	await expectAccessible(page);

	// The same bucket at an address that admits pages; the stored secret stays.
	await section.getByRole('button', { name: 'Change' }).click();
	const change = page.getByRole('dialog', { name: 'Change bucket' });
	await expect(change.getByLabel('Secret access key')).toHaveValue('');
	await change.getByLabel('Endpoint').fill(seaweed.open);
	await change.getByRole('button', { name: 'Save' }).click();
	await expect(section).toContainText('Uploads from this browser work.');

	await section.getByRole('button', { name: 'Move files' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Move files' }).click();
	await expect(section).toContainText(/1 file moved/);
	await expectAccessible(page);
	for (const width of [1440, 390, 320]) {
		await page.setViewportSize({ width, height: 900 });
		await expectNoOverflow(page);
	}
	await page.setViewportSize({ width: 1440, height: 900 });
	const shots = process.env.TALE_E2E_SHOTS;
	if (shots) await page.screenshot({ path: `${shots}/residency-moved.png`, fullPage: true });

	const after = await upload('newer.txt');
	expect(after.origin).toBe(seaweed.open);
	expect(after.pathname).toMatch(new RegExp(`^/${BUCKET.name}/tale/`));

	await open('settings/data-residency');
	await section.getByRole('button', { name: 'Disconnect' }).click();
	const ask = page.getByRole('alertdialog');
	await expect(ask).toContainText('can’t be opened until it is connected again');
	await ask.getByRole('button', { name: 'Disconnect' }).click();
	await expect(section).toContainText('Object store of the deployment');
	const back = await upload('back.txt');
	expect(back.origin).not.toBe(seaweed.open);
});
