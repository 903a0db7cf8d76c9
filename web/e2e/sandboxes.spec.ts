import { expect, expectAccessible, expectNoOverflow, OWNER, prefer, test } from './support/app.ts';
import { startServer } from './support/server.ts';
import { startSpawner } from './support/spawner.ts';

test('a deployment without sandboxes offers none and says how to get them', async ({ owner }) => {
	const { page } = owner;
	await owner.open('settings/account');
	await expect(page.getByRole('link', { name: 'AI providers' })).toBeVisible();
	await expect(page.getByRole('link', { name: 'Sandboxes', exact: true })).toHaveCount(0);
	await owner.open('settings/sandboxes');
	await expect(page.getByText('This deployment has no sandboxes')).toBeVisible();
	await expect(page.getByText('SANDBOX_TOKEN', { exact: false })).toBeVisible();
	await expectAccessible(page);
});

test('code is run, followed, stopped and found again, and limits must fit the host', async ({ browser }) => {
	test.setTimeout(180_000);
	const spawner = await startSpawner();
	const server = await startServer({ SANDBOX_URL: spawner.url, SANDBOX_TOKEN: 'a token of the scenario' });
	const context = await browser.newContext({ baseURL: server.url });
	try {
		const form = { name: OWNER.name, email: OWNER.email, password: OWNER.password, organizationName: 'Fairbridge' };
		const made = await context.request.post('/api/app/setup', { data: form, headers: { Origin: server.url } });
		const orgId = (await made.json()).organization.id as string;
		await prefer(context, 'light', 'en');
		const page = await context.newPage();
		await page.goto(`/dashboard/${orgId}/settings/sandboxes?tab=run`);
		await expect(page.getByText('Your sandbox is asleep', { exact: false })).toBeVisible();
		await expectAccessible(page);

		const program = page.getByRole('textbox', { name: 'Program' });
		await program.fill('print("x")');
		await program.press('Control+Enter');
		const output = page.getByRole('region', { name: 'Output' });
		await expect(output.getByRole('log')).toHaveText('hello from python');
		await expect(output.getByRole('status').filter({ hasText: 'Done' })).toBeVisible();
		// What it left can be saved.
		await expect(page.getByRole('link', { name: 'Save report.csv' })).toHaveAttribute('href', /path=report\.csv/);

		// One that goes on is still followed after a reload, and ends when it is stopped.
		await page.getByText('Shell', { exact: true }).click();
		await program.fill('sleep 600');
		await page.getByRole('button', { name: 'Run', exact: true }).click();
		await expect(output.getByRole('log')).toHaveText('hello from shell');
		await page.reload();
		await expect(output.getByRole('log')).toHaveText('hello from shell');
		await output.getByRole('button', { name: 'Stop' }).click();
		await expect(output.getByRole('status').filter({ hasText: 'Stopped' })).toBeVisible();
		await expectAccessible(page);

		await page.getByRole('link', { name: 'Limits and use' }).click();
		await expect(page.getByText('2 runs in 30 days', { exact: false })).toBeVisible();
		await expect(page.getByRole('cell', { name: new RegExp(`^${OWNER.name}`) })).toBeVisible();
		const limits = page.getByRole('region', { name: 'Organization limits' });
		const workspaces = limits.getByRole('textbox', { name: 'Workspaces' });
		await workspaces.fill('0');
		await limits.getByRole('button', { name: 'Save' }).click();
		await expect(page.getByText('Enter a whole number from 1 to 500')).toBeVisible();
		await workspaces.fill('5');
		await expect(page.getByText('Together 9 of 8', { exact: false })).toBeVisible();
		await limits.getByRole('button', { name: 'Save' }).click();
		await expect(page.getByRole('alert')).toContainText('more than this deployment holds');
		await workspaces.fill('4');
		await limits.getByRole('button', { name: 'Save' }).click();
		await expect(page.getByText('0 of 4 in use', { exact: false })).toBeVisible();

		// What is asleep says when it is deleted; a longer rule moves the day on at once.
		const cleanup = page.getByRole('region', { name: 'Unused workspaces' });
		const days = cleanup.getByRole('textbox', { name: 'Days without use' });
		await expect(days).toHaveValue('30');
		await days.fill('0');
		await cleanup.getByRole('button', { name: 'Save' }).click();
		await expect(cleanup.getByText('Enter a whole number from 1 to 3650')).toBeVisible();
		await cleanup.getByRole('button', { name: 'Discard' }).click();
		await expect(days).toHaveValue('30');
		await days.fill('3650');
		await cleanup.getByRole('button', { name: 'Save' }).click();
		await expect(cleanup.getByRole('button', { name: 'Save' })).toBeDisabled();
		await expect(page.getByText(/Deleted on .* unless used again/)).toBeVisible();
		await expectAccessible(page);
		await page.setViewportSize({ width: 320, height: 800 });
		await expectNoOverflow(page);
		await page.emulateMedia({ colorScheme: 'dark' });
		await expectAccessible(page);
	} finally {
		await context.close();
		await server.stop();
		spawner.stop();
	}
});
