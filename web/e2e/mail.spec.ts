import { expect, test } from '@playwright/test';
import { expectAccessible, expectNoOverflow, ORGANIZATION, OWNER, prefer } from './support/app.ts';
import { mailServerThere, startMailServer } from './support/mail.ts';
import { startServer } from './support/server.ts';

test('with a mail server people choose what they are told by email, and get it with a link', async ({ browser }) => {
	test.skip(!mailServerThere(), 'scripts/setup test has not fetched the mail server');
	test.setTimeout(180_000);
	const mail = await startMailServer();
	const server = await startServer({
		SMTP_HOST: '127.0.0.1',
		SMTP_PORT: mail.port,
		SMTP_TLS: 'none',
		SMTP_FROM: 'tale@fairbridge.example'
	});
	const context = await browser.newContext({ baseURL: server.url });
	try {
		const origin = { Origin: server.url };
		const data = { name: OWNER.name, email: OWNER.email, password: OWNER.password, organizationName: ORGANIZATION };
		const made = await context.request.post(`${server.url}/api/app/setup`, { data, headers: origin });
		expect(made.ok(), await made.text()).toBe(true);
		const { organizations } = await (await context.request.get(`${server.url}/api/app/session`)).json();
		const orgId = organizations[0].id;
		const makeKey = async (name: string) => {
			const answer = await context.request.post(`${server.url}/api/app/api-keys?orgId=${orgId}`, {
				data: { name, expiresInDays: 1 },
				headers: origin
			});
			expect(answer.ok(), await answer.text()).toBe(true);
		};
		await prefer(context, 'light', 'en');
		const page = await context.newPage();
		await page.goto(`/dashboard/${orgId}/settings/notifications`);
		const keys = page.getByRole('switch', { name: 'API keys that are made for your account', exact: true });
		const byMail = page.getByRole('switch', { name: 'By email: API keys that are made for your account' });
		await expect(byMail).toBeChecked();
		await expect(page.getByText('are always told, by email too')).toBeVisible();
		await expectAccessible(page);

		await makeKey('Nightly <b>export</b>');
		await expect.poll(() => mail.received().length, { timeout: 60_000 }).toBe(1);
		const [letter] = mail.received();
		expect(letter?.to).toEqual([OWNER.email]);
		expect(letter?.html).toContain('Nightly &lt;b&gt;export&lt;/b&gt;');
		const link = /https?:\/\/\S+settings\/api\/rest/.exec(letter?.text ?? '')?.[0];
		await page.goto(link ?? '');
		await expect(page.getByText('Nightly <b>export</b>')).toBeVisible();

		// What is not wanted by email is still told in Tale.
		await page.goto(`/dashboard/${orgId}/settings/notifications`);
		const saved = () =>
			page.waitForResponse((answer) => answer.url().includes('/notifications/settings') && answer.ok());
		let done = saved();
		await byMail.focus();
		await page.keyboard.press('Space');
		await done;
		await expect(byMail).not.toBeChecked();
		await expect(keys).toBeChecked();
		await makeKey('Quiet');
		const password = { currentPassword: OWNER.password, newPassword: `${OWNER.password}!` };
		const changed = await context.request.post(`${server.url}/api/app/account/password`, {
			data: password,
			headers: origin
		});
		expect(changed.ok(), await changed.text()).toBe(true);
		// That ended every session.
		const again = await context.request.post(`${server.url}/api/auth/sign-in/email`, {
			data: { email: OWNER.email, password: password.newPassword },
			headers: origin
		});
		expect(again.ok(), await again.text()).toBe(true);
		await expect.poll(() => mail.received().length, { timeout: 60_000 }).toBe(2);
		expect(mail.received()[1]?.text).not.toContain('Quiet');
		await page.goto(`/dashboard/${orgId}/settings/notifications`);
		await expect(byMail).not.toBeChecked();
		done = saved();
		await keys.click();
		await done;
		await expect(byMail).toBeDisabled();
		await page.setViewportSize({ width: 320, height: 800 });
		await expectNoOverflow(page);
	} finally {
		await context.close();
		await server.stop();
		mail.stop();
	}
});
