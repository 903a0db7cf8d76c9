/** A message waits on the server for its file: over a reload, in a second tab, and back into the field. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, expectAccessible, expectNoOverflow, test } from './support/app.ts';

/** Read for several seconds on any machine: longer than two pages take to load. */
const LONG_BYTES = 95_000_000;
const QUEUED = 'Queued — sends when the attachments are ready';
let folder: string;
let logbook: string;

test.beforeAll(async () => {
	folder = await mkdtemp(join(tmpdir(), 'tale-e2e-upload-'));
	logbook = join(folder, 'logbook.txt');
	const day = (at: number) => `Day ${at}: the harbour light burned ${at % 24} hours, wind force ${at % 12}.\n\n`;
	const month = Array.from({ length: 20_000 }, (_, at) => day(at)).join('');
	await writeFile(logbook, month.repeat(Math.floor(LONG_BYTES / month.length)));
});

test.afterAll(() => rm(folder, { recursive: true, force: true }));

test.beforeEach(async ({ owner: { page, open } }) => {
	await open('settings/providers');
	await expect(page.getByText('not a language model').first()).toBeVisible();
	const add = page.getByRole('button', { name: 'Add the demo' });
	if (await add.isVisible()) {
		await add.click();
		await expect(add).toBeHidden();
	}
	await open('chat');
});

test('a message waits for its file and goes by itself, in every tab', async ({ owner: { page }, context }) => {
	test.setTimeout(240_000);
	const question = `What does the logbook say about the harbour light? ${randomUUID().slice(0, 8)}`;
	const box = page.getByRole('textbox', { name: 'Message' });
	const queue = page.getByRole('list', { name: 'Waiting messages' });

	await test.step('Send parks it while the file is being read', async () => {
		await page.locator('input[type=file]').setInputFiles(logbook);
		await expect(page.getByRole('list', { name: 'Going with this message' }).getByText('Indexing…')).toBeVisible();
		await box.fill(question);
		await box.press('Enter');
		await expect(queue.getByText(QUEUED)).toBeVisible();
		await expect(queue.getByText('logbook.txt')).toBeVisible();
		await expect(box).toHaveValue('');
		await expect(page).toHaveURL(/\/chat\/[0-9a-f-]{36}/);
	});

	const second = await context.newPage();
	await test.step('a reload and a second tab show it', async () => {
		await Promise.all([page.reload(), second.goto(page.url())]);
		for (const tab of [page, second]) {
			const waiting = tab.getByRole('list', { name: 'Waiting messages' });
			await expect(waiting.getByText(QUEUED)).toBeVisible();
			await expect(waiting.getByText(question)).toBeVisible();
		}
		await expectAccessible(page);
		await second.setViewportSize({ width: 390, height: 844 });
		await expectNoOverflow(second);
	});

	await test.step('it goes, and both tabs show the message and no queue', async () => {
		for (const tab of [page, second]) {
			await expect(tab.getByRole('article', { name: 'You' })).toContainText(question, { timeout: 180_000 });
			await expect(tab.getByRole('list', { name: 'Waiting messages' })).toBeHidden();
			await expect(tab.getByRole('article', { name: 'Answer' }).last()).toContainText('harbour');
			await expect(tab.getByRole('article', { name: 'You' })).toHaveCount(1);
		}
		await expectAccessible(page);
	});
});

test('a parked first message comes back into the field, and its chat goes', async ({ owner: { page, orgId } }) => {
	const words = `Never mind ${randomUUID().slice(0, 8)}`;
	const box = page.getByRole('textbox', { name: 'Message' });
	await page.locator('input[type=file]').setInputFiles(logbook);
	await expect(page.getByRole('list', { name: 'Going with this message' }).getByText('Indexing…')).toBeVisible();
	await box.fill(words);
	await box.press('Enter');
	await expect(page).toHaveURL(/\/chat\/[0-9a-f-]{36}/);
	const chat = page.url();
	await page.reload();
	await expect(page.getByRole('list', { name: 'Waiting messages' }).getByText(words)).toBeVisible();
	await page.getByRole('button', { name: 'Take it back into the field' }).click();
	await expect(page).toHaveURL(new RegExp(`/dashboard/${orgId}/chat$`));
	await expect(box).toHaveValue(words);
	await expect(page.getByRole('list', { name: 'Going with this message' }).getByText('logbook.txt')).toBeVisible();
	await page.goto(chat);
	await expect(page.getByText('This chat is not available.')).toBeVisible();
});
