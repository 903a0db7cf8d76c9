import type { Browser, BrowserContext, Page } from '@playwright/test';
import { baseUrl, expect, expectAccessible, expectNoOverflow, prefer, test } from './support/app.ts';
import { KEY, startVendor } from './support/vendor.ts';

test.skip(() => !process.env.TALE_E2E_PRIVATE_HOSTS, 'the server must allow private provider hosts');

const PASSWORD = 'Harbour-lantern-42';

interface Doors {
	put: (path: string, data: unknown) => Promise<void>;
	post: (path: string, data: unknown) => Promise<void>;
	remove: (path: string) => Promise<unknown>;
}

function doors(page: Page, orgId: string): Doors {
	const at = (path: string) => `${baseUrl()}/api/app/${path}${path.includes('?') ? '&' : '?'}orgId=${orgId}`;
	const headers = { Origin: baseUrl() };
	return {
		put: async (path, data) => expect((await page.request.put(at(path), { data, headers })).ok()).toBe(true),
		post: async (path, data) => expect((await page.request.post(at(path), { data, headers })).ok()).toBe(true),
		remove: (path) => page.request.delete(at(path), { headers })
	};
}

/** Somebody with the role of a member, signed in. */
async function member(browser: Browser, api: Doors): Promise<{ context: BrowserContext; page: Page }> {
	const email = `lena.${Date.now()}@fairbridge.example`;
	await api.post('members', { name: 'Lena Brandt', email, role: 'member', password: PASSWORD });
	const context = await browser.newContext({ baseURL: baseUrl() });
	const signedIn = await context.request.post(`${baseUrl()}/api/auth/sign-in/email`, {
		data: { email, password: PASSWORD },
		headers: { Origin: baseUrl() }
	});
	expect(signedIn.ok()).toBe(true);
	await prefer(context, 'dark', 'en');
	return { context, page: await context.newPage() };
}

const off = { value: { enabled: null, mode: null, rules: null, modelApi: null } };

test('a model that is blocked leaves a member’s picker, and a message pinned to it is refused by name', async ({
	owner,
	browser
}) => {
	const { page, orgId } = owner;
	const api = doors(page, orgId);
	const vendor = await startVendor();
	const models = ['leeds-chat', 'leeds-large'].map((id) => ({
		id,
		contextWindow: 32000,
		purposes: ['chat'],
		capabilities: { tools: false, vision: false, reasoning: false }
	}));
	await api.post('providers', {
		name: 'leeds',
		displayName: 'Leeds',
		apiFormat: 'openai',
		baseUrl: vendor.url,
		apiKey: KEY,
		models
	});
	const { context, page: lena } = await member(browser, api);
	try {
		await lena.goto(`/dashboard/${orgId}/chat`);
		const picker = lena.getByRole('button', { name: /^Model/ });
		await picker.click();
		await lena.getByRole('option', { name: 'leeds-large' }).click();
		await expect(picker).toContainText('leeds-large');
		await lena.getByRole('textbox', { name: 'Message' }).fill('What was agreed?');

		// Her browser hears of the rule at once, so the message that is pinned to the model is made to be under way.
		await lena.route('**/api/app/chat/composer?*', (route) => route.abort());
		await owner.open('settings/governance');
		await expect(page).toHaveURL(/governance\/content-models$/);
		await expect(page.getByRole('heading', { level: 1, name: 'Governance · Content & Models' })).toBeVisible();
		await expectAccessible(page);
		const access = page.getByRole('region', { name: 'Model access' });
		await access.getByRole('button', { name: 'Add rule' }).click();
		const dialog = page.getByRole('dialog', { name: 'Add rule' });
		await dialog.getByLabel('Applies to').selectOption('Role');
		await dialog.getByRole('button', { name: 'Save' }).click();
		await expect(dialog.getByText('Choose for whom the rule is')).toBeVisible();
		await expectAccessible(page);
		await dialog.getByLabel('Role', { exact: true }).selectOption('Member');
		await dialog.getByRole('searchbox', { name: 'Search: Blocked models' }).fill('large');
		await dialog.getByRole('checkbox', { name: 'leeds-large' }).check();
		await dialog.getByRole('button', { name: 'Save' }).click();
		await expect(access.getByRole('row', { name: /Role: Member/ })).toContainText('Blocked: leeds-large');
		const enforced = page.waitForResponse((answer) => answer.request().method() === 'PUT' && answer.ok());
		await access.getByRole('switch', { name: 'Enforce model access' }).click();
		await enforced;
		await expect(access.getByRole('switch')).toBeChecked();

		await lena.getByRole('textbox', { name: 'Message' }).press('Enter');
		await expect(
			lena.getByText('Your organization’s model access policy does not let you use this model.')
		).toBeVisible();
		await lena.unroute('**/api/app/chat/composer?*');
		await lena.reload();
		await expect(picker).not.toContainText('leeds-large');
		await picker.click();
		await expect(lena.getByRole('option', { name: 'leeds-chat' })).toBeVisible();
		await expect(lena.getByRole('option', { name: 'leeds-large' })).toHaveCount(0);

		// A default that this rule denies is saved with a warning.
		const defaults = page.getByRole('region', { name: 'Default models' });
		await defaults.getByRole('button', { name: 'Add rule' }).click();
		await dialog.getByLabel('Model').selectOption('leeds-large (Leeds)');
		await expect(dialog.getByText('Model access denies this model to Member.')).toBeVisible();
		await expectAccessible(page);
		await dialog.getByRole('button', { name: 'Save' }).click();
		await expect(defaults.getByRole('row', { name: /Everyone/ })).toContainText('Denied by model access');

		// The switch of the endpoints is saved as it is switched, and leaves the rules alone.
		await page.getByRole('switch', { name: 'Allow model calls with API keys' }).click();
		await expect(page.getByRole('status').filter({ hasText: 'Model endpoints are on' })).toBeAttached();
		await page.reload();
		await expect(page.getByRole('switch', { name: 'Allow model calls with API keys' })).toBeChecked();
		await expect(access.getByRole('row', { name: /Role: Member/ })).toContainText('leeds-large');

		// Without any model the chat says whose decision that is.
		const every = ['leeds/leeds-chat', 'leeds/leeds-large', 'tale-demo'];
		await api.put('governance/policies/model_access', {
			value: { rules: [{ scope: 'default', blockedModels: every }] }
		});
		await lena.goto(`/dashboard/${orgId}/chat`);
		await expect(lena.getByText('Your organization lets you use no model').first()).toBeVisible();
		await expectAccessible(lena);
	} finally {
		await api.put('governance/policies/default_models', { value: { enabled: null, rules: null } });
		await api.put('governance/policies/model_access', off);
		await api.remove('providers/leeds?version=1');
		await context.close();
		vendor.stop();
	}
});

test('a budget rule is written, edited, and never overwrites what a second tab saved', async ({ owner, context }) => {
	const { page, orgId } = owner;
	const api = doors(page, orgId);
	try {
		await owner.open('settings/governance/policies-limits');
		const budgets = page.getByRole('region', { name: 'Budget rules' });
		await expect(budgets).toContainText('No rules yet: nothing is limited.');
		await budgets.getByRole('button', { name: 'Add rule' }).press('Enter');
		const dialog = page.getByRole('dialog', { name: 'Add rule' });
		await dialog.getByRole('button', { name: 'Save' }).click();
		await expect(dialog.getByText('Enter at least one limit')).toBeVisible();
		await dialog.getByLabel('Cost in US dollars').fill('a lot');
		await dialog.getByRole('button', { name: 'Save' }).click();
		await expect(dialog.getByText('Enter an amount above zero, such as 20 or 0.50')).toBeVisible();
		await expectAccessible(page);
		await dialog.getByLabel('Applies to').selectOption('One person');
		await dialog.getByLabel('One person').selectOption({ index: 1 });
		await dialog.getByLabel('Cost in US dollars').fill('20');
		await dialog.getByLabel('Requests').fill('500');
		await dialog.getByLabel('Warn at percent').fill('80');
		await dialog.getByLabel('Warn at percent').press('Enter');
		const row = budgets.getByRole('row').filter({ hasText: '500 requests' });
		await expect(row).toContainText(/US?\$20\.00 and 500 requests, monthly/);
		await expect(row).toContainText('Warns at 80%');
		await expectAccessible(page);

		// Two tabs open the same rule.
		const second = await context.newPage();
		await second.goto(`/dashboard/${orgId}/settings/governance/policies-limits`);
		for (const tab of [page, second]) {
			await tab.getByRole('button', { name: /^Actions for/ }).click();
			await tab.getByRole('menuitem', { name: 'Edit rule' }).click();
		}
		const edit = (tab: Page) => tab.getByRole('dialog', { name: 'Edit rule' });
		await edit(second).getByLabel('Cost in US dollars').fill('30');
		await edit(second).getByRole('button', { name: 'Save' }).click();
		await expect(second.getByRole('row').filter({ hasText: '30.00' })).toBeVisible();
		await edit(page).getByLabel('Cost in US dollars').fill('10');
		await edit(page).getByRole('button', { name: 'Save' }).click();
		await expect(edit(page).getByRole('alert')).toContainText('Someone saved this policy in the meantime.');
		await expectAccessible(page);
		await edit(page).getByRole('button', { name: 'Show the current rules' }).click();
		await expect(page.getByRole('row').filter({ hasText: '30.00' })).toBeVisible();
		await expect(edit(page)).toHaveCount(0);

		await page.getByRole('button', { name: /^Actions for/ }).click();
		await page.getByRole('menuitem', { name: 'Remove rule' }).click();
		await page.getByRole('alertdialog').getByRole('button', { name: 'Remove rule' }).click();
		await expect(budgets).toContainText('No rules yet: nothing is limited.');
		await second.setViewportSize({ width: 390, height: 844 });
		await expect(second.getByText('No rules yet: nothing is limited.')).toBeVisible();
		await expectNoOverflow(second);
		await second.close();
	} finally {
		await api.put('governance/policies/budgets', { value: { enabled: null, rules: null } });
	}
});
