/**
 * The main job, as a person does it once the server is set up (see `first-run`): connect the demo, upload documents, ask,
 * watch the answer stream, open the cited passage in its document.
 */
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { Page } from '@playwright/test';
import { expect, expectAccessible, test } from './support/app.ts';

const fixture = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));
const FILES = ['supply-agreement.pdf', 'travel-policy.docx', 'calibration.md'];
/** Tells what this run made from what an earlier one left on the same server. */
const RUN = randomUUID().slice(0, 8);
const QUESTION = 'What is the notice period for termination of the supply agreement?';

/** Counts the lengths that the answer has on screen from now on. */
async function watchAnswer(page: Page): Promise<void> {
	await page.evaluate(() => {
		const seen = new Set<number>();
		Object.assign(globalThis, { answerLengths: seen });
		new MutationObserver(() => {
			seen.add([...document.querySelectorAll('.prose')].at(-1)?.textContent?.length ?? 0);
		}).observe(document.body, { childList: true, characterData: true, subtree: true });
	});
}

function answerSteps(page: Page): Promise<number> {
	return page.evaluate(() => (globalThis as unknown as { answerLengths: Set<number> }).answerLengths.size);
}

test('a person asks, and Tale answers from their own documents', async ({ owner: { page, open } }) => {
	await test.step('the demo is connected', async () => {
		await open('settings/providers');
		await expect(page.getByText('not a language model').first()).toBeVisible();
		const add = page.getByRole('button', { name: 'Add the demo' });
		if (await add.isVisible()) {
			await add.click();
			await expect(add).toBeHidden();
		}
	});

	await test.step('documents are uploaded and become searchable', async () => {
		await open('documents');
		await page.getByRole('button', { name: 'Upload documents' }).first().click();
		await page.getByRole('dialog').locator('input[type=file]').setInputFiles(FILES.map(fixture));
		const tray = page.getByRole('region', { name: 'Uploads' });
		await expect(tray.getByRole('heading', { name: '3 files uploaded' })).toBeVisible();
		for (const name of ['supply-agreement', 'travel-policy', 'calibration']) {
			await expect(
				page.getByRole('row').filter({ hasText: name }).first().getByText('Indexed').filter({ visible: true })
			).toBeVisible();
		}
		await expectAccessible(page);
		await tray.getByRole('button', { name: 'Close' }).click();
		await expect(tray).toBeHidden();
	});

	const answer = page.getByRole('article', { name: 'Answer' }).last();
	await test.step('a question is answered while it is being written', async () => {
		await open('chat');
		const box = page.getByRole('textbox', { name: 'Message' });
		await expect(box).toBeFocused();
		await expectAccessible(page);
		await box.fill(QUESTION);
		await watchAnswer(page);
		await box.press('Enter');
		await expect(page.getByRole('article', { name: 'You' }).last()).toContainText(QUESTION);
		await expect(page).toHaveURL(/\/chat\/[0-9a-f-]{36}/);
		await expect(answer.getByText('Searched knowledge for').first()).toBeVisible();
		await expect(answer.getByRole('group', { name: 'Reply actions' })).toBeVisible();
		await expect(answer).toContainText('unless either party gives written notice');
		expect(await answerSteps(page), 'the answer grew on screen').toBeGreaterThan(1);
		await expect(answer.getByRole('button', { name: /^Source \d+/ }).first()).toBeVisible();
		await expectAccessible(page);
	});

	const pane = page.getByRole('complementary', { name: 'Document preview' });
	await test.step('the source opens its passage, marked on the page and in the text', async () => {
		const sources = answer.getByRole('group', { name: 'Sources' });
		await sources
			.getByRole('button', { name: /supply-agreement/ })
			.first()
			.click();
		await expect(pane.getByRole('heading', { name: /supply-agreement/ })).toBeVisible();
		await expect(pane.locator('[data-mark]').first()).toBeInViewport();
		await expect(pane.getByLabel('Page', { exact: true })).not.toHaveValue('1');
		await expectAccessible(page);
		await pane.getByText('Text', { exact: true }).click();
		await expect(
			pane.locator('mark').filter({ hasText: 'days before the end of the current period' })
		).toBeInViewport();
		await expectAccessible(page);
	});

	await test.step('Escape goes back to the source; a citation mark opens the passage as well', async () => {
		await page.keyboard.press('Escape');
		await expect(pane).toBeHidden();
		await expect(answer.getByRole('button', { name: /supply-agreement/ }).first()).toBeFocused();
		const mark = answer.getByRole('button', { name: /^Source \d+/ }).first();
		await mark.click();
		await expect(pane).toBeVisible();
		await expect(mark).toHaveAttribute('aria-pressed', 'true');
	});

	await test.step('a reload shows the same answer', async () => {
		await page.reload();
		await expect(answer).toContainText('unless either party gives written notice');
		const list = page.getByRole('navigation', { name: 'Home' });
		await expect(list.locator('[aria-current=page]')).toBeVisible();
	});
});

test('a chat keeps its draft, its versions and its title', async ({ owner: { page, open } }) => {
	await open('chat');
	const box = page.getByRole('textbox', { name: 'Message' });
	await box.fill('How often are the sensors of the FB-220 series');
	await page.reload();
	await expect(box).toHaveValue('How often are the sensors of the FB-220 series');
	await box.pressSequentially(' recalibrated?');
	await box.press('Enter');

	const answer = page.getByRole('article', { name: 'Answer' }).last();
	await expect(answer.getByRole('group', { name: 'Reply actions' })).toBeVisible();
	await expect(answer).toContainText('twelve months');
	await expect(box).toHaveValue('');

	await answer.getByRole('button', { name: 'Try again' }).click();
	await expect(page.getByText('2 / 2')).toBeVisible();
	await expect(answer.getByRole('group', { name: 'Reply actions' })).toBeVisible();
	await page.getByRole('button', { name: 'Previous branch' }).click();
	await expect(page.getByText('1 / 2')).toBeVisible();

	const question = page.getByRole('article', { name: 'You' }).last();
	await question.hover();
	await question.getByRole('button', { name: 'Edit message' }).click();
	await page.getByRole('textbox', { name: 'Edit message' }).fill('What deviation is permitted for FB-220 sensors?');
	await page.keyboard.press('Enter');
	await expect(page.getByText('3 / 3')).toBeVisible();
	await expect(answer).toContainText('Calibration of FB-220 sensors');
	await expect(answer.getByRole('group', { name: 'Reply actions' })).toBeVisible();

	const good = answer.getByRole('button', { name: 'Good answer' });
	await good.click();
	await expect(good).toHaveAttribute('aria-pressed', 'true');
	await page.reload();
	await expect(good).toHaveAttribute('aria-pressed', 'true');

	await page.getByRole('button', { name: 'Conversation actions' }).click();
	await page.getByRole('menuitem', { name: 'Rename' }).click();
	await page.getByRole('textbox', { name: 'Title' }).fill(`Sensors ${RUN}`);
	await page.keyboard.press('Enter');
	await expect(page.getByRole('heading', { name: `Sensors ${RUN}`, level: 1 })).toBeVisible();
	await expect(page.getByRole('navigation', { name: 'Home' }).getByText(`Sensors ${RUN}`)).toBeVisible();
	await expectAccessible(page);

	await page.getByRole('button', { name: 'Conversation actions' }).click();
	await page.getByRole('menuitem', { name: 'Delete' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click();
	await expect(page).toHaveURL(/\/chat$/);
	await page.getByRole('button', { name: 'Undo' }).click();
	await expect(page.getByRole('navigation', { name: 'Home' }).getByText(`Sensors ${RUN}`)).toBeVisible();
});

test('documents are read, renamed and deleted with a way back', async ({ owner: { page, open } }) => {
	await open('documents');
	await page.getByRole('button', { name: 'travel-policy', exact: true }).first().click();
	const pane = page.getByRole('complementary', { name: 'Document preview' });
	await expect(pane).toContainText('one hundred and forty euros');
	await expectAccessible(page);
	await page.keyboard.press('Escape');
	await expect(pane).toBeHidden();
	await expect(page.getByRole('button', { name: 'travel-policy', exact: true }).first()).toBeFocused();

	await page.getByRole('button', { name: 'Actions for travel-policy' }).first().click();
	await page.getByRole('menuitem', { name: 'Rename' }).click();
	await page.getByRole('textbox', { name: 'Name' }).fill(`Travel rules ${RUN}`);
	await page.keyboard.press('Enter');
	await page.getByRole('button', { name: `Actions for Travel rules ${RUN}` }).click();
	await page.getByRole('menuitem', { name: 'Delete' }).click();
	await page.getByRole('button', { name: 'Delete document' }).click();
	const row = page.getByRole('row').filter({ hasText: `Travel rules ${RUN}` });
	await expect(row).toBeHidden();
	await page.getByRole('button', { name: 'Undo' }).click();
	await expect(row).toBeVisible();

	await page.getByRole('searchbox', { name: 'Search documents' }).fill('nothing is called this');
	await expect(page.getByText('No document matches')).toBeVisible();
	await expectAccessible(page);
});
