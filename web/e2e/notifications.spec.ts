import { baseUrl, expect, expectAccessible, expectNoOverflow, test } from './support/app.ts';

test('the bell counts what is new at once, leads to it, and what was declined is not told', async ({ owner }) => {
	const { page } = owner;
	await owner.open('settings/notifications');
	await page.request.post(`${baseUrl()}/api/app/notifications/read?orgId=${owner.orgId}`, {
		data: {},
		headers: { Origin: baseUrl() }
	});
	const make = async (name: string) => {
		const made = await page.request.post(`${baseUrl()}/api/app/api-keys?orgId=${owner.orgId}`, {
			data: { name, expiresInDays: 1 },
			headers: { Origin: baseUrl() }
		});
		expect(made.ok(), await made.text()).toBe(true);
	};
	const rail = page.getByRole('navigation', { name: 'Main navigation' });
	const bell = rail.getByRole('button', { name: 'Notifications' });
	await expect(rail.getByRole('button', { name: 'Notifications', exact: true })).toBeVisible();
	await expectAccessible(page);

	// It arrives while the page is open.
	const name = `Nightly ${Date.now()}`;
	await make(name);
	await expect(bell).toHaveAccessibleName('Notifications, 1 unread', { timeout: 5_000 });
	await bell.click();
	const panel = page.getByRole('dialog', { name: 'Notifications' });
	await expect(panel.getByRole('link', { name: `Unread: API key made` })).toContainText(name);
	await expectAccessible(page);
	await panel.getByRole('button', { name: 'Mark “API key made” as read' }).click();
	await expect(panel.getByText('You’re all caught up')).toBeVisible();
	await expect(bell).toHaveAccessibleName('Notifications');
	await panel.getByText('All', { exact: true }).click();
	await panel.getByRole('link', { name: 'API key made' }).first().click();
	await expect(page).toHaveURL(/settings\/api\/rest/);
	await expect(panel).toBeHidden();

	// A kind that is declined is not told.
	await owner.open('settings/notifications');
	const keys = page.getByRole('switch', { name: 'API keys that are made for your account' });
	await expect(keys).toBeChecked();
	// This server sends no mail, so nothing of it is to be seen.
	await expect(page.getByText('By email')).toHaveCount(0);
	const saved = () => page.waitForResponse((answer) => answer.url().includes('/notifications/settings') && answer.ok());
	let done = saved();
	await keys.click();
	await done;
	await expect(keys).not.toBeChecked();
	await make(`${name} quiet`);
	await page.reload();
	await expect(keys).not.toBeChecked();
	await expect(rail.getByRole('button', { name: 'Notifications', exact: true })).toBeVisible();
	await expectAccessible(page);
	done = saved();
	await keys.click();
	await done;
	await page.setViewportSize({ width: 390, height: 844 });
	await expectNoOverflow(page);
});
