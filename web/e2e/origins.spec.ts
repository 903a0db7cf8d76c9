/**
 * Where a deployment is reached: under a path, from a page that was built once for any path, and by several origins that
 * are entry points of their own.
 */
import { fileURLToPath } from 'node:url';
import type { Page } from '@playwright/test';
import { baseUrl, expect, expectAccessible, ORGANIZATION, OWNER, test } from './support/app.ts';
import { startServer } from './support/server.ts';

const SUPPORT = 'https://help.example/?organizationId=x&a=1';

/** Everything the page asks its own origin for and everything that fails, from now on. */
function watch(page: Page, origin: string): { asked: Set<string>; failed: string[] } {
	const seen = { asked: new Set<string>(), failed: [] as string[] };
	page.on('request', (request) => {
		const url = new URL(request.url());
		if (url.origin === origin) seen.asked.add(url.pathname);
	});
	page.on('response', (answer) => {
		if (answer.status() >= 400) seen.failed.push(`${answer.status()} ${answer.url()}`);
	});
	page.on('pageerror', (error) => seen.failed.push(String(error)));
	return seen;
}

async function logOut(page: Page): Promise<void> {
	await page.getByRole('button', { name: `account of ${OWNER.name}` }).click();
	await page.getByRole('menuitem', { name: 'Log out' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Log out' }).click();
}

test('the main job is done under a base path', async ({ browser }) => {
	test.setTimeout(180_000);
	const server = await startServer({ BASE_PATH: '/app/', TALE_CONTACT_SUPPORT_URL: SUPPORT });
	const { origin } = new URL(server.url);
	expect(server.url).toBe(`${origin}/app`);
	const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
	const page = await context.newPage();
	const { asked, failed } = watch(page, origin);
	let orgId = '';
	try {
		await test.step('a new server is set up', async () => {
			await page.goto(server.url);
			await expect(page).toHaveURL(`${server.url}/setup`);
			await page.getByLabel('Name').fill(OWNER.name);
			await page.getByLabel('Email').fill(OWNER.email);
			await page.getByLabel('Password', { exact: true }).fill(OWNER.password);
			await page.getByRole('button', { name: 'Continue' }).click();
			await page.getByLabel('Organization name').fill(ORGANIZATION);
			await page.getByRole('button', { name: 'Create organization' }).click();
			await page.getByRole('button', { name: 'Go to Home' }).click();
			await expect(page).toHaveURL(/\/app\/dashboard\/[^/]+\/chat$/);
			orgId = new URL(page.url()).pathname.split('/')[3] ?? '';
			const cookies = await context.cookies();
			expect(cookies.map(({ name }) => name).sort()).toEqual(['tale_device', 'tale_session']);
			for (const cookie of cookies) expect(cookie).toMatchObject({ path: '/app', httpOnly: true });
		});

		await test.step('a document is uploaded', async () => {
			await page.getByRole('link', { name: 'Settings' }).first().click();
			await page.getByRole('link', { name: 'AI providers' }).click();
			await page.getByRole('button', { name: 'Add the demo' }).click();
			await expect(page.getByRole('button', { name: 'Add the demo' })).toBeHidden();
			await page.getByRole('link', { name: 'Knowledge' }).first().click();
			await page.getByRole('button', { name: 'Upload documents' }).first().click();
			const file = fileURLToPath(new URL('fixtures/supply-agreement.pdf', import.meta.url));
			await page.getByRole('dialog').locator('input[type=file]').setInputFiles(file);
			const row = page.getByRole('row').filter({ hasText: 'supply-agreement' }).first();
			await expect(row.getByText('Indexed').filter({ visible: true })).toBeVisible();
		});

		await test.step('a question is answered, and its source opens', async () => {
			await page.goto(`${server.url}/dashboard/${orgId}/chat`);
			const box = page.getByRole('textbox', { name: 'Message' });
			await box.fill('What is the notice period for termination of the supply agreement?');
			await box.press('Enter');
			const answer = page.getByRole('article', { name: 'Answer' }).last();
			await expect(answer.getByRole('group', { name: 'Reply actions' })).toBeVisible();
			await expect(answer).toContainText('unless either party gives written notice');
			await answer
				.getByRole('group', { name: 'Sources' })
				.getByRole('button', { name: /supply-agreement/ })
				.first()
				.click();
			const pane = page.getByRole('complementary', { name: 'Document preview' });
			await expect(pane.locator('[data-mark]').first()).toBeInViewport();
			await page.reload();
			await expect(answer).toContainText('unless either party gives written notice');
		});

		await test.step('addresses for others carry the path once', async () => {
			await page.getByRole('button', { name: 'Conversation actions' }).click();
			await page.getByRole('menuitem', { name: 'Share', exact: true }).click();
			await page.getByRole('radio', { name: 'Share with organization' }).check();
			await page.getByRole('button', { name: 'Create share link' }).click();
			const shared = page.getByRole('link', { name: 'Preview' });
			await expect(shared).toHaveAttribute('href', /^\/app\/dashboard\/[^/]+\/chat\/shared\//);
			const href = (await shared.getAttribute('href')) ?? '';
			await expect(page.getByRole('textbox', { name: 'Share link' })).toHaveValue(origin + href);
			await page.goto(origin + href);
			await expect(page.getByText('unless either party gives written notice').first()).toBeVisible();
		});

		await test.step('the API reference works', async () => {
			await page.goto(`${server.url}/dashboard/${orgId}/settings/api/rest`);
			await expect(page.getByText(`${server.url}/api/v1`, { exact: true })).toBeVisible();
			const href = await page.getByRole('link', { name: 'API reference' }).getAttribute('href');
			expect(href).toBe('/app/docs');
			await page.goto(origin + href);
			await expect(page.getByText('/api/v1/threads', { exact: true }).first()).toBeVisible();
			await expect(page.getByRole('combobox').first()).toContainText(server.url);
		});

		await test.step('signing out and in again comes back to the page', async () => {
			await page.goto(`${server.url}/dashboard/${orgId}/documents`);
			await logOut(page);
			await expect(page).toHaveURL(`${server.url}/log-in`);
			await page.goto(`${server.url}/dashboard/${orgId}/documents`);
			await expect(page).toHaveURL(/\/app\/log-in\?next=/);
			await page.getByLabel('Email').fill(OWNER.email);
			await page.getByLabel('Password', { exact: true }).fill(OWNER.password);
			await page.getByRole('button', { name: 'Log in', exact: true }).click();
			await expect(page).toHaveURL(`${server.url}/dashboard/${orgId}/documents`);
		});

		expect(failed).toEqual([]);
		const outside = [...asked].filter((path) => !/^\/app(\/|$)/.test(path) && !path.startsWith('/tale-blobs/'));
		expect(outside).toEqual([]);

		await test.step('an error screen leads to the operator’s help', async () => {
			await page.route('**/app/api/app/documents?*', (route) =>
				route.fulfill({ status: 500, json: { error: 'Broken.', code: 'INTERNAL', requestId: 'r-1' } })
			);
			await page.reload();
			const help = page.getByRole('link', { name: 'Contact support' });
			await expect(help).toHaveAttribute('href', `https://help.example/?a=1&organizationId=${orgId}`);
			await expectAccessible(page);
		});
	} finally {
		await context.close();
		await server.stop();
	}
});

test('every origin is an entry of its own', async ({ browser }) => {
	const local = new URL(baseUrl());
	test.skip(local.hostname !== 'localhost', 'needs a server of this machine');
	const other = new URL(baseUrl());
	other.hostname = '127.0.0.1';
	const context = await browser.newContext();
	const signedIn = async (page: Page, site: URL) => {
		await page.goto(new URL('/log-in', site).href);
		await page.getByLabel('Email').fill(OWNER.email);
		await page.getByLabel('Password', { exact: true }).fill(OWNER.password);
		await page.getByRole('button', { name: 'Log in', exact: true }).click();
		await expect(page).toHaveURL(new RegExp(`^${site.origin}/dashboard/[^/]+/chat`));
	};
	const [one, two] = [await context.newPage(), await context.newPage()];
	await signedIn(one, local);
	await two.goto(other.href);
	await expect(two).toHaveURL(new URL('/log-in', other).href);
	await signedIn(two, other);
	await expect(two.locator('meta[name=tale-address]')).toHaveAttribute('content', other.origin);

	const { asked, failed } = watch(two, other.origin);
	await two.getByRole('link', { name: 'Knowledge' }).first().click();
	await two.getByRole('button', { name: 'Upload documents' }).first().click();
	const file = { name: 'second-entry.md', mimeType: 'text/markdown', buffer: Buffer.from('# By the second entry') };
	await two.getByRole('dialog').locator('input[type=file]').setInputFiles(file);
	await expect(two.getByRole('heading', { name: '1 file uploaded' })).toBeVisible();
	expect([...asked].some((path) => path.startsWith('/tale-blobs/'))).toBe(true);
	expect(failed).toEqual([]);

	await logOut(one);
	await expect(one).toHaveURL(new URL('/log-in', local).href);
	await two.reload();
	await expect(two.getByRole('button', { name: 'Upload documents' }).first()).toBeVisible();
	await context.close();
});
