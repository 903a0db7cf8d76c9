/** What people do all day around the main job: keep order, select many, use keys, and lose neither words nor place. */
import { randomUUID } from 'node:crypto';
import type { Page } from '@playwright/test';
import { expect, expectAccessible, expectNoOverflow, OWNER, prefer, test } from './support/app.ts';
import { addDocuments, ask, seed } from './support/seed.ts';

const RUN = randomUUID().slice(0, 8);

function rows(page: Page) {
	return page.getByRole('table', { name: 'Documents' }).locator('tbody tr');
}

test.beforeEach(async ({ context, owner }) => void (await seed(context, owner.orgId)));

test('documents are ordered on the server and many are deleted at once, with a way back', async ({
	context,
	owner: { page, orgId, open }
}) => {
	const names = ['Äpfel', 'Birnen', 'Zitronen'].map((fruit) => `${fruit} ${RUN}`);
	await addDocuments(
		context,
		orgId,
		Object.fromEntries(names.map((name, at) => [`${name}.txt`, 'fruit '.repeat(at + 1)]))
	);
	await open('documents');
	await page.getByRole('searchbox', { name: 'Search documents' }).fill(RUN);
	await expect(rows(page)).toHaveCount(3);

	await page.getByRole('button', { name: 'Name', exact: true }).click();
	await expect(page.getByRole('columnheader', { name: 'Name' })).toHaveAttribute('aria-sort', 'ascending');
	await expect(rows(page)).toContainText(names);
	await page.getByRole('button', { name: 'Name', exact: true }).click();
	await expect(rows(page)).toContainText(names.toReversed());
	await page.getByRole('button', { name: 'Size', exact: true }).click();
	await expect(rows(page)).toContainText(names.toReversed());

	// By keys: one row, then along to the next, then nothing again.
	const bar = page.getByRole('group', { name: 'Selected documents' });
	await page.getByRole('checkbox', { name: `Select ${names[2]}` }).focus();
	await page.keyboard.press('Space');
	await page.keyboard.press('Shift+ArrowDown');
	await expect(page.getByRole('checkbox', { name: `Select ${names[1]}` })).toBeFocused();
	await expect(bar).toContainText('2 selected');
	await page.keyboard.press('Escape');
	await expect(bar).toBeHidden();

	// By pointer: a range; a change elsewhere leaves it as it is.
	await page.getByRole('checkbox', { name: `Select ${names[2]}` }).click();
	await page.getByRole('checkbox', { name: `Select ${names[0]}` }).click({ modifiers: ['Shift'] });
	await expect(bar).toContainText('3 selected');
	await page.getByRole('checkbox', { name: `Select ${names[1]}` }).click();
	await addDocuments(context, orgId, { [`Datteln ${RUN}.txt`]: 'fruit' });
	await expect(rows(page)).toHaveCount(4);
	await expect(bar).toContainText('2 selected');
	await expect(page.getByRole('checkbox', { name: 'Select all' })).toHaveJSProperty('indeterminate', true);
	await expectAccessible(page);

	await bar.getByRole('button', { name: 'Delete' }).click();
	await expectAccessible(page);
	await page.getByRole('alertdialog').getByRole('button', { name: 'Delete documents' }).click();
	await expect(page.getByText('2 documents deleted').first()).toBeVisible();
	await expect(rows(page)).toHaveCount(2);
	await expect(bar).toBeHidden();
	await page.getByRole('button', { name: 'Undo' }).click();
	await expect(rows(page)).toHaveCount(4);
});

test('only the rows of a long library scroll; a narrow one is ordered by a list', async ({ owner: { page, open } }) => {
	await page.setViewportSize({ width: 1024, height: 500 });
	await open('documents');
	await expect(page.getByRole('checkbox', { name: 'Select all' })).toBeVisible();
	const scroll = await page.locator('main').evaluate((main) => [main.scrollHeight, main.clientHeight]);
	expect(scroll[0], 'the page itself stands still').toBeLessThanOrEqual(scroll[1] ?? 0);
	await page.setViewportSize({ width: 390, height: 844 });
	await page.getByRole('combobox', { name: 'Sort by' }).selectOption({ label: 'Name, A to Z' });
	await page
		.getByRole('checkbox', { name: /^Select (?!all)/ })
		.first()
		.click();
	await expect(page.getByRole('group', { name: 'Selected documents' })).toBeInViewport();
	await expectNoOverflow(page);
});

for (const [theme, locale] of [
	['dark', 'de'],
	['light', 'fr']
] as const) {
	test(`the library fits 320 px and 200 % zoom with rows selected, ${theme}, ${locale}`, async ({
		context,
		owner: { page, orgId, open }
	}) => {
		await prefer(context, theme, locale, orgId);
		for (const [width, height] of [
			[320, 640],
			[720, 450]
		] as const) {
			await page.setViewportSize({ width, height });
			await open('documents');
			await page.locator('tbody input[type=checkbox]').first().click();
			await expectNoOverflow(page);
			await expectAccessible(page);
		}
	});
}

test('a chat dragged to the archive is archived, dropped elsewhere it stays', async ({
	context,
	owner: { page, orgId, open }
}) => {
	const title = `Dragged ${RUN}`;
	await ask(context, orgId, 'How often are FB-200 sensors recalibrated?', title);
	await open('chat');
	const home = page.getByRole('navigation', { name: 'Home' });
	const row = home.getByRole('link', { name: title });
	await row.dragTo(home.getByText('Today', { exact: true }).first());
	await expect(row).toBeVisible();
	await row.dragTo(home.getByRole('button', { name: 'Archived' }));
	await expect(page.getByText('Chat archived').first()).toBeVisible();
	await expect(row).toBeHidden();
	await page.getByRole('button', { name: 'Undo' }).click();
	await expect(row).toBeVisible();
});

test('Alt and arrows go through the chats, and leave a text field alone', async ({
	context,
	owner: { page, orgId, open }
}) => {
	await ask(context, orgId, 'How often are FB-200 sensors recalibrated?', `First ${RUN}`);
	await ask(context, orgId, 'When does the warehouse accept deliveries?', `Second ${RUN}`);
	await open('chat');
	await page.getByRole('navigation', { name: 'Home' }).getByText(`Second ${RUN}`).click();
	await expect(page.getByRole('heading', { level: 1, name: `Second ${RUN}` })).toBeVisible();
	await page.keyboard.press('Alt+ArrowDown');
	await expect(page.getByRole('heading', { level: 1, name: `First ${RUN}` })).toBeVisible();
	await page.getByRole('textbox', { name: 'Message' }).focus();
	await page.keyboard.press('Alt+ArrowUp');
	await page.getByRole('navigation', { name: 'Home' }).getByText(`First ${RUN}`).focus();
	await expect(page.getByRole('heading', { level: 1, name: `First ${RUN}` })).toBeVisible();
	await page.locator('main').focus();
	await page.keyboard.press('Alt+ArrowUp');
	await expect(page.getByRole('heading', { level: 1, name: `Second ${RUN}` })).toBeVisible();
});

test('the palette names the keys and opens the list of all', async ({ owner: { page, open } }) => {
	await open('chat');
	const field = page.getByRole('textbox', { name: 'Message' });
	await expect(field).toBeFocused();
	await page.keyboard.press('Control+k');
	await expect(page.getByRole('option', { name: /New chat/ })).toContainText('Alt+Ctrl+N');
	await page.getByRole('combobox', { name: 'Search' }).fill('shortcuts');
	await page.keyboard.press('Enter');
	const list = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
	await expect(list).toContainText('Next chat');
	await expectAccessible(page);
	await page.keyboard.press('Alt+ArrowDown');
	await expect(list, 'what floats has the keys to itself').toBeVisible();
	await expect(page).toHaveURL(/\/chat$/);
	await page.keyboard.press('Escape');
	await expect(list).toBeHidden();
	await expect(field).toBeFocused();
});

test('a file of this chat alone opens beside the answer that cites it', async ({ owner: { page, open } }) => {
	await open('chat');
	const file = { name: `kettle-${RUN}.md`, mimeType: 'text/markdown' };
	const text = `# Kettle ${RUN}\n\nThe zephyr kettle of hall nine must be descaled every eleven weeks.\n`;
	await page.locator('form input[type=file]').setInputFiles({ ...file, buffer: Buffer.from(text) });
	// Nothing is sent before its bytes have arrived.
	await expect(page.getByRole('button', { name: `Remove ${file.name}` })).toBeVisible();
	const box = page.getByRole('textbox', { name: 'Message' });
	await box.fill('How often must the zephyr kettle of hall nine be descaled?');
	await box.press('Enter');
	const answer = page.getByRole('article', { name: 'Answer' }).last();
	await expect(answer.getByRole('group', { name: 'Reply actions' })).toBeVisible();
	const pane = page.getByRole('complementary', { name: 'Document preview' });
	await answer
		.getByRole('group', { name: 'Sources' })
		.getByRole('button', { name: new RegExp(file.name) })
		.click();
	await expect(pane.locator('mark').filter({ hasText: 'eleven weeks' })).toBeInViewport();
	await expect(pane.getByRole('link', { name: 'Open in Documents' })).toHaveCount(0);
	await expectAccessible(page);
	await page.keyboard.press('Escape');
	await expect(pane).toBeHidden();
	await page.getByRole('article', { name: 'You' }).last().getByRole('button', { name: file.name }).click();
	await expect(pane).toContainText('zephyr kettle');
});

test('a newer version is offered when the stream comes back, once nobody types', async ({ owner: { page, open } }) => {
	await open('chat');
	const box = page.getByRole('textbox', { name: 'Message' });
	await expect(box).toBeFocused();
	await page.route('**/_app/version.json', (route) => route.fulfill({ json: { version: 'another' } }));
	await box.pressSequentially('half a thou');
	await page.context().setOffline(true);
	await expect(page.getByRole('alertdialog')).toBeVisible({ timeout: 15_000 });
	await page.context().setOffline(false);
	await expect(page.getByRole('alertdialog')).toHaveCount(0, { timeout: 15_000 });
	const offer = page.getByRole('region', { name: 'Notices' }).getByText('A new version is available');
	await expect(offer).toBeVisible({ timeout: 15_000 });
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Later' }).click();
	await expect(offer).toBeHidden();
	await expect(box).toHaveValue('half a thou');
	await box.fill('');
});

test('an ended session keeps what was being typed', async ({ context, owner: { page, orgId, open } }) => {
	await open('chat');
	const box = page.getByRole('textbox', { name: 'Message' });
	await box.fill(`Not sent ${RUN}`);
	const answer = await context.request.post('/api/auth/sign-out', { headers: { Origin: new URL(page.url()).origin } });
	expect(answer.ok()).toBe(true);
	await box.press('Enter');
	await expect(page).toHaveURL(/\/log-in\?next=/, { timeout: 15_000 });
	await page.getByLabel('Email').fill(process.env.TALE_E2E_EMAIL ?? 'maya@fairbridge.example');
	await page.getByLabel('Password', { exact: true }).fill(process.env.TALE_E2E_PASSWORD ?? 'Harbour-lantern-42');
	await page.keyboard.press('Enter');
	await expect(page).toHaveURL(new RegExp(`/dashboard/${orgId}/chat`));
	await expect(box).toHaveValue(`Not sent ${RUN}`);
	await box.fill('');
});

test('a chat prints as text from its first to its last line', async ({ context, owner: { page, orgId, open } }) => {
	const threadId = await ask(context, orgId, 'How often are FB-200 sensors recalibrated?', `Printed ${RUN}`);
	await page.setViewportSize({ width: 1024, height: 320 });
	await open(`chat/${threadId}`);
	await expect(page.getByRole('article', { name: 'Answer' })).toBeVisible();
	await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
	await expect(page.getByRole('navigation', { name: 'Home' })).toBeHidden();
	await expect(page.getByRole('textbox', { name: 'Message' })).toBeHidden();
	const { page: height, text } = await page.evaluate(() => ({
		page: document.documentElement.scrollHeight,
		text: document.querySelector('.messages')?.scrollHeight ?? Infinity
	}));
	expect(height, 'nothing is cut off').toBeGreaterThanOrEqual(text);
	expect(await page.evaluate(() => getComputedStyle(document.querySelector('.app')!).backgroundColor)).toBe(
		'rgb(255, 255, 255)'
	);
});

test('an edit that was not sent is there again after the session ended', async ({
	context,
	owner: { page, orgId, open }
}) => {
	const thread = await ask(context, orgId, 'What is the notice period?', `Edited ${RUN}`);
	await open(`chat/${thread}`);
	const question = page.getByRole('article', { name: 'You' }).first();
	await question.hover();
	await question.getByRole('button', { name: 'Edit message' }).click();
	const field = page.getByRole('textbox', { name: 'Edit message' });
	await field.fill('What is the notice period for suppliers?');

	await context.clearCookies();
	await field.press('Enter');
	await expect(page).toHaveURL(/\/log-in/);
	await page.getByLabel('Email').fill(OWNER.email);
	await page.getByLabel('Password', { exact: true }).fill(OWNER.password);
	await page.keyboard.press('Enter');
	await expect(page).toHaveURL(new RegExp(`chat/${thread}`));
	await expect(field).toHaveValue('What is the notice period for suppliers?');

	await field.press('Escape');
	await expect(field).toBeHidden();
	await page.reload();
	await expect(question).toBeVisible();
	await expect(field).toHaveCount(0);
});

test('an upload that the server has no space for says so', async ({ owner: { page, open } }) => {
	await page.route('**/tale-blobs/**', (route) => route.fulfill({ status: 507, body: '<Error/>' }));
	await open('documents');
	await page.getByRole('button', { name: 'Upload documents' }).first().click();
	await page
		.getByRole('dialog')
		.locator('input[type=file]')
		.setInputFiles({ name: `Full ${RUN}.txt`, mimeType: 'text/plain', buffer: Buffer.from('words') });
	await expect(page.getByText('The server has no space left for files.')).toBeVisible();
});
