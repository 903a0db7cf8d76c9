/** Share links, as their owner and a colleague see them; and ratings with a word to them. */
import { randomUUID } from 'node:crypto';
import type { Page } from '@playwright/test';
import { baseUrl, expect, expectAccessible, expectNoOverflow, prefer, test } from './support/app.ts';
import { seed } from './support/seed.ts';

const PASSWORD = 'Harbour-lantern-42';

async function openDialog(page: Page) {
	await page.getByRole('button', { name: 'Conversation actions' }).click();
	await page.getByRole('menuitem', { name: 'Share', exact: true }).click();
	return page.getByRole('dialog', { name: 'Share chat' });
}

async function ask(page: Page, text: string) {
	await page.getByRole('textbox', { name: 'Message' }).fill(text);
	await page.keyboard.press('Enter');
	await expect(page.getByRole('article', { name: 'You' }).last()).toContainText(text);
	await expect(
		page.getByRole('article', { name: 'Answer' }).last().getByRole('group', { name: 'Reply actions' })
	).toBeVisible();
}

test('a chat is shared, read by a colleague, renewed and taken back', async ({
	owner: { page, orgId, open },
	context,
	browser
}) => {
	test.slow();
	await seed(context, orgId);
	await context.grantPermissions(['clipboard-read', 'clipboard-write']);
	await open('chat');
	await ask(page, 'How often are FB-200 sensors recalibrated?');
	const keep = page.getByRole('radio', { name: 'Keep private' });
	const share = page.getByRole('radio', { name: 'Share with organization' });
	const panel = page.getByRole('navigation', { name: 'Home' });
	let link = '';

	await test.step('nothing is published before the link is asked for', async () => {
		const dialog = await openDialog(page);
		await expect(keep).toBeChecked();
		await expect(keep).toBeFocused();
		await page.keyboard.press('ArrowDown');
		await expect(share).toBeChecked();
		await expect(share).toBeFocused();
		await expectAccessible(page);
		await page.keyboard.press('Tab');
		await expect(dialog.getByRole('button', { name: 'Create share link' })).toBeFocused();
		await page.keyboard.press('Shift+Tab');
		await expect(share, 'the group is one tab stop').toBeFocused();
		await page.keyboard.press('Escape');
		await expect(dialog).toBeHidden();
		await expect(page.getByRole('button', { name: 'Conversation actions' })).toBeFocused();
		await openDialog(page);
		await expect(keep).toBeChecked();
	});

	const second = await context.newPage();
	await second.goto(`/dashboard/${orgId}/documents`);
	await second.goto(page.url());
	await test.step('the link is made and copied; every open tab shows the mark', async () => {
		const dialog = page.getByRole('dialog', { name: 'Share chat' });
		await page.keyboard.press('ArrowDown');
		await dialog.getByRole('button', { name: 'Create share link' }).click();
		const copy = dialog.getByRole('button', { name: 'Copy link' });
		await expect(copy).toBeFocused();
		await copy.click();
		link = await page.evaluate(() => navigator.clipboard.readText());
		expect(link).toMatch(new RegExp(`^${baseUrl()}/dashboard/${orgId}/chat/shared/[\\w-]{43}$`));
		await expect(dialog.getByRole('link', { name: 'Preview' })).toHaveAttribute('href', new URL(link).pathname);
		await expectAccessible(page);
		await page.keyboard.press('Escape');
		await expect(page.locator('header').getByText('Shared', { exact: true })).toBeVisible();
		await expect(second.locator('header').getByText('Shared', { exact: true })).toBeVisible();
		const row = second.getByRole('navigation', { name: 'Home' }).locator('a[aria-current=page]');
		await expect(row).toContainText('Shared');
		await second.close();
	});

	const email = `tom.${randomUUID().slice(0, 8)}@fairbridge.example`;
	const added = await context.request.post(`/api/app/members?orgId=${orgId}`, {
		data: { name: 'Tom Okafor', email, role: 'member', password: PASSWORD },
		headers: { Origin: baseUrl() }
	});
	expect(added.status()).toBe(201);
	const theirs = await browser.newContext({ baseURL: baseUrl() });
	await prefer(theirs, 'light', 'en');
	const reader = await theirs.newPage();
	const answers = reader.getByRole('article', { name: 'Answer' });

	await test.step('a colleague signs in on the way and reads, without a composer or a list', async () => {
		await reader.goto(link);
		await reader.getByLabel('Email').fill(email);
		await reader.getByLabel('Password', { exact: true }).fill(PASSWORD);
		await reader.keyboard.press('Enter');
		await expect(reader).toHaveURL(link);
		await expect(reader.getByRole('heading', { level: 1, name: 'Shared chat' })).toBeVisible();
		await expect(reader.getByText(/^Shared by Maya Lindqvist · /)).toBeVisible();
		await expect(reader.getByRole('article', { name: 'Maya Lindqvist' })).toHaveCount(1);
		await expect(answers).toHaveCount(1);
		await expect(answers.first()).toContainText('twelve months');
		await expect(reader.getByRole('textbox')).toHaveCount(0);
		await expect(reader.getByRole('navigation', { name: 'Home' })).toHaveCount(0);
		await expect(answers.getByRole('button', { name: /Good answer|Try again|Fork/ })).toHaveCount(0);
		await expect(answers.getByText('Searched knowledge')).toHaveCount(0);
		await expectAccessible(reader);
		await answers
			.getByRole('button', { name: /^Source \d+/ })
			.first()
			.click();
		const pane = reader.getByRole('complementary', { name: 'Document preview' });
		await expect(pane).toContainText('recalibrated after twelve months');
		await expectAccessible(reader);
		await reader.keyboard.press('Escape');
		await expect(pane).toBeHidden();
		await reader.setViewportSize({ width: 390, height: 844 });
		await expectNoOverflow(reader);
		await expectAccessible(reader);
		await reader.setViewportSize({ width: 1440, height: 900 });
	});

	await test.step('later messages stay out until they are included; the link stays', async () => {
		await ask(page, 'When does the Leeds warehouse accept deliveries?');
		await reader.reload();
		await expect(answers).toHaveCount(1);
		const dialog = await openDialog(page);
		await expect(share).toBeChecked();
		await expect(share).toBeFocused();
		await dialog.getByRole('button', { name: 'Include newer messages' }).click();
		await expect(dialog.getByRole('button', { name: 'Include newer messages' })).toBeHidden();
		await expect(answers, 'without a reload').toHaveCount(2);
		await expect(dialog.getByLabel('Share link')).toHaveValue(link);
	});

	await test.step('a refused revocation puts the check back, and Space tries again', async () => {
		await page.route('**/unshare*', (route) =>
			route.fulfill({ status: 500, json: { error: 'No.', code: 'INTERNAL_ERROR', data: null } })
		);
		await share.focus();
		await page.keyboard.press('ArrowUp');
		await expect(page.getByRole('alert').getByText('The chat is still shared')).toBeVisible();
		await expect(share).toBeChecked();
		await expect(keep).toBeFocused();
		await expectAccessible(page);
		await page.unroute('**/unshare*');
		await page.keyboard.press('Space');
		await expect(keep).toBeChecked();
		await expect(page.getByLabel('Share link')).toBeHidden();
		await expect(page.getByRole('alert')).toHaveCount(0);
	});

	await test.step('the page goes dark where it is open, and stays so', async () => {
		const dark = reader.getByRole('heading', { name: 'This shared chat is no longer available.' });
		await expect(dark).toBeVisible();
		await expect(answers).toHaveCount(0);
		await reader.reload();
		await expect(dark).toBeVisible();
		await expectAccessible(reader);
		await page.keyboard.press('Escape');
		await expect(page.locator('header').getByText('Shared', { exact: true })).toBeHidden();
	});

	await test.step('what cannot be read is not guessed', async () => {
		await page.route('**/share-status*', (route) =>
			route.fulfill({ status: 500, json: { error: 'No.', code: 'INTERNAL_ERROR', data: null } })
		);
		const dialog = await openDialog(page);
		const again = dialog.getByRole('button', { name: 'Try again' });
		await expect(again).toBeVisible();
		for (const radio of [keep, share]) {
			await expect(radio).toBeDisabled();
			await expect(radio).not.toBeChecked();
		}
		await expect(dialog.getByRole('button', { name: /link/ })).toHaveCount(0);
		await expectAccessible(page);
		await again.focus();
		await page.unroute('**/share-status*');
		await page.keyboard.press('Enter');
		await expect(keep).toBeChecked();
		await expect(keep).toBeFocused();
		await page.keyboard.press('Escape');
	});

	await test.step('the row shares and stops sharing as well', async () => {
		const row = panel.getByRole('listitem').filter({ has: page.locator('a[aria-current=page]') });
		await row.hover();
		await row.getByRole('button', { name: /^Actions for/ }).click();
		await expect(page.getByRole('menuitem', { name: 'Stop sharing' })).toHaveCount(0);
		await page.getByRole('menuitem', { name: 'Share', exact: true }).click();
		await share.check();
		await page.getByRole('button', { name: 'Create share link' }).click();
		await expect(page.getByRole('button', { name: 'Copy link' })).toBeVisible();
		await page.keyboard.press('Escape');
		await row.hover();
		await row.getByRole('button', { name: /^Actions for/ }).click();
		await page.getByRole('menuitem', { name: 'Stop sharing' }).click();
		await expect(page.locator('header').getByText('Shared', { exact: true })).toBeHidden();
	});
	await theirs.close();
});

test('an answer is rated with one tap, with a word to it, and the rating is taken back', async ({
	owner: { page, orgId, open },
	context
}) => {
	await seed(context, orgId);
	await open('chat');
	await ask(page, 'How often are FB-200 sensors recalibrated?');
	const answer = page.getByRole('article', { name: 'Answer' }).last();
	const good = answer.getByRole('button', { name: 'Good answer' });
	const bad = answer.getByRole('button', { name: 'Bad answer' });
	const field = answer.getByRole('textbox');

	await good.focus();
	await page.keyboard.press('Space');
	await expect(good).toHaveAttribute('aria-pressed', 'true');
	await expect(good, 'the offer to comment takes no focus').toBeFocused();
	await expect(field).toHaveAccessibleName('What was good about it?');
	await expectAccessible(page);
	await page.keyboard.press('Escape');
	await bad.click();
	await expect(bad).toHaveAttribute('aria-pressed', 'true');
	await expect(good).toHaveAttribute('aria-pressed', 'false');
	await expect(field).toHaveAccessibleName('What should be better?');
	await field.fill('Name the procedure.');
	await page.keyboard.press('Control+Enter');
	const change = answer.getByRole('button', { name: 'Change the comment' });
	await expect(change).toBeFocused();
	await expect(field).toBeHidden();

	await page.reload();
	await expect(bad).toHaveAttribute('aria-pressed', 'true');
	await change.click();
	await expect(field).toBeFocused();
	await expect(field, 'the server reads no comment back').toHaveValue('');
	await expect(answer.getByText('You left a comment. A new one takes its place.')).toBeVisible();
	await answer.getByRole('button', { name: 'Remove comment' }).click();
	await expect(answer.getByRole('button', { name: 'Add a comment' })).toBeVisible();

	await bad.click();
	await expect(bad).toHaveAttribute('aria-pressed', 'false');
	await expect(answer.getByRole('button', { name: 'Add a comment' })).toBeHidden();
	await page.getByRole('button', { name: 'Undo' }).click();
	await expect(bad).toHaveAttribute('aria-pressed', 'true');
	await page.reload();
	await expect(bad).toHaveAttribute('aria-pressed', 'true');
});
