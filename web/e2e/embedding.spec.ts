/** Pages of Tale in frames of other pages: of listed origins only, signed in on the same site, and never in a loop. */
import { createServer } from 'node:http';
import type { Page } from '@playwright/test';
import { baseUrl, expect, expectAccessible, test } from './support/app.ts';

/** A page around a frame that shows `inside`, or what its own query names. */
async function portal(inside: string): Promise<{ port: number; stop: () => void }> {
	const server = createServer((request, response) => {
		const named = new URL(request.url ?? '/', 'http://localhost').searchParams.get('inside');
		response.setHeader('content-type', 'text/html');
		response.end(
			`<!doctype html><title>Portal</title><iframe src="${named ?? inside}" width="1200" height="800"></iframe>`
		);
	});
	await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
	const { port } = server.address() as { port: number };
	return { port, stop: () => server.close() };
}

/** The address that the frame ends at; nothing when the browser refused to show it. */
async function framed(page: Page, portalUrl: string): Promise<string> {
	await page.goto(portalUrl, { waitUntil: 'networkidle' });
	const url = page.frames()[1]?.url() ?? '';
	return url.startsWith('chrome-error:') ? '' : url;
}

test('listed origins show Tale in a frame, and blocked cookies end at the form', async ({ owner, browser }) => {
	const tale = new URL(baseUrl());
	test.skip(tale.hostname !== 'localhost', 'needs a server of this machine');
	const { page } = owner;
	const around = await portal(`${tale.origin}/dashboard/${owner.orgId}/documents`);
	// Of the same site and of another one.
	const [same, other] = [`http://localhost:${around.port}`, `http://127.0.0.1:${around.port}`];
	const visitor = await page.context().newPage();
	try {
		expect(await framed(visitor, same)).toBe('');

		await owner.open('settings/trusted-headers');
		const section = page.getByRole('region', { name: 'Embedding' });
		const field = section.getByLabel('Origins');
		await field.fill('http://portal.example.org');
		await section.getByRole('button', { name: 'Save' }).click();
		await expect(section.getByText('Enter at most ten https addresses')).toBeVisible();
		await expectAccessible(page);
		await field.fill(`${same}\n${other}`);
		await section.getByRole('button', { name: 'Save' }).click();
		await expect(section.getByRole('button', { name: 'Save' })).toBeDisabled();
		await expect(field).toHaveValue(`${other}\n${same}`);
		await expectAccessible(page);

		await expect
			.poll(async () => (await page.request.get('/log-in')).headers()['content-security-policy'], { timeout: 15_000 })
			.toContain(`frame-ancestors 'self' ${other} ${same}`);
		expect((await page.request.get('/log-in')).headers()['x-frame-options']).toBeUndefined();
		expect(await framed(visitor, same)).toBe(`${tale.origin}/dashboard/${owner.orgId}/documents`);
		await expect(visitor.frameLocator('iframe').getByRole('heading', { level: 1, name: 'Knowledge' })).toBeVisible();

		await test.step('a page of no organization leads a frame to those only that list its origin', async () => {
			const made = await page.request.post('/api/app/organizations', {
				data: { name: 'Quiet Quarry' },
				headers: { Origin: tale.origin }
			});
			const { id: quiet } = await made.json();
			const switchTo = (orgId: string) =>
				visitor.goto(`${same}/?inside=${encodeURIComponent(`${tale.origin}/dashboard/switching?to=${orgId}`)}`);
			const address = () => visitor.frames()[1]?.url();
			const chat = `${tale.origin}/dashboard/${owner.orgId}/chat`;
			let loads = 0;
			visitor.on('request', (request) => {
				if (request.isNavigationRequest() && request.url() === chat) loads += 1;
			});
			await switchTo(owner.orgId);
			await expect.poll(address).toBe(chat);
			await expect(visitor.frameLocator('iframe').getByRole('textbox').first()).toBeVisible();
			expect(loads).toBe(1);
			await switchTo(quiet);
			await expect.poll(address).toMatch(/^chrome-error:/);
		});

		await test.step('a frame of another site ends at the form, also behind a proxy that hands people over', async () => {
			const enabled = page.getByRole('switch', { name: 'Let a reverse proxy sign people in' });
			await enabled.click();
			await expect(enabled).toBeChecked();
			await page.getByRole('button', { name: 'Create key' }).first().click();
			await page.getByLabel('Name', { exact: true }).fill('frame');
			await page.keyboard.press('Enter');
			const secret = await page.getByLabel('Key of the proxy').inputValue();
			await page.getByRole('button', { name: 'Done' }).click();
			const extraHTTPHeaders = { 'Remote-Email': 'fay@fairbridge.example', 'Remote-Internal-Secret': secret };
			const behind = await browser.newContext({ extraHTTPHeaders });
			const outside = await behind.newPage();
			let handOffs = 0;
			outside.on('request', (request) => {
				if (request.url().includes('/api/trusted-headers/authenticate')) handOffs += 1;
			});
			expect(await framed(outside, other)).toMatch(new RegExp(`^${tale.origin}/log-in`));
			await expect(outside.frameLocator('iframe').getByLabel('Email')).toBeVisible();
			expect(handOffs).toBeLessThanOrEqual(1);
			// On the same site the hand-off works in the frame.
			expect(await framed(outside, same)).toBe(`${tale.origin}/dashboard/${owner.orgId}/documents`);
			await behind.close();
			await page.getByRole('button', { name: 'Revoke frame' }).click();
			await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).click();
			await enabled.click();
			await expect(enabled).not.toBeChecked();
		});

		await field.fill('');
		await section.getByRole('button', { name: 'Save' }).click();
		await expect(section.getByRole('button', { name: 'Save' })).toBeDisabled();
		await expect
			.poll(async () => (await page.request.get('/log-in')).headers()['x-frame-options'], { timeout: 15_000 })
			.toBe('DENY');
	} finally {
		around.stop();
	}
});

test('a key asks for signed assertions, and shows what they are signed with', async ({ owner }) => {
	const { page } = owner;
	await owner.open('settings/trusted-headers');
	await page.getByRole('button', { name: 'Create key' }).first().click();
	await page.getByLabel('Name', { exact: true }).fill('signing');
	await page.getByLabel('Take signed assertions only').check();
	await page.keyboard.press('Enter');
	const secret = await page.getByLabel('Signing secret').inputValue();
	expect(secret).toMatch(/^[0-9a-f]{64}$/);
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Done' }).click();
	const only = page.getByRole('switch', { name: 'Signed only: signing' });
	await expect(only).toBeChecked();
	await only.click();
	await expect(only).not.toBeChecked();
	await only.click();
	await expect(page.getByLabel('Signing secret')).toHaveValue(secret);
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Done' }).click();
	await expect(only).toBeChecked();
	await page.getByRole('button', { name: 'Revoke signing' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).click();
	await expect(only).toBeHidden();
});

test('an admin shortens how long sessions may be idle', async ({ owner }) => {
	const { page } = owner;
	await owner.open('settings/governance/security');
	const section = page.getByRole('region', { name: 'Sessions' });
	const enabled = section.getByRole('switch', { name: 'End inactive sessions' });
	await enabled.click();
	const minutes = section.getByLabel('Minutes without activity');
	await expect(minutes).toHaveValue('30');
	await minutes.fill('0');
	await section.getByRole('button', { name: 'Save' }).click();
	await expect(section.getByText('Enter a whole number from 1 to 1440.')).toBeVisible();
	await expectAccessible(page);
	await minutes.fill('240');
	await minutes.press('Enter');
	await expect(section.getByRole('button', { name: 'Discard' })).toBeHidden();
	await page.reload();
	await expect(minutes).toHaveValue('240');
	await enabled.click();
	await section.getByRole('button', { name: 'Save' }).click();
	await expect(section.getByRole('button', { name: 'Discard' })).toBeHidden();
	await page.reload();
	await expect(enabled).not.toBeChecked();
});
