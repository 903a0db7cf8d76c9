import type { Page } from '@playwright/test';
import { baseUrl, expect, expectAccessible, expectNoOverflow, prefer, test } from './support/app.ts';
import { CLIENT, CLIENT_SECRET, startIdentityProvider, type IdentityProvider } from './support/identity-provider.ts';
import { OWN, startSamlProvider } from './support/saml-provider.ts';

let provider: IdentityProvider;
test.beforeAll(async () => {
	provider = await startIdentityProvider(`${baseUrl()}/api/sso/callback`);
});
test.afterAll(() => provider.stop());

/** Logs in on the provider's own pages. */
async function logInAt(page: Page, login: string) {
	await page.getByPlaceholder('Enter any login').fill(login);
	await page.getByPlaceholder('and password').fill('any');
	await page.getByRole('button', { name: 'Sign-in' }).click();
	await page.getByRole('button', { name: 'Continue' }).click();
}

test('people sign in at a real identity provider', async ({ owner, browser, baseURL }) => {
	const { page } = owner;
	await owner.open('settings/enterprise-sso');
	await page.getByLabel('Issuer').fill(`${provider.issuer}/other`);
	await page.getByLabel('Client ID', { exact: true }).fill(CLIENT);
	await page.getByLabel('Client secret', { exact: true }).fill('wrong');
	await page.getByRole('button', { name: 'Test connection' }).click();
	await expect(page.getByText(/Discovery document: .*404/)).toBeVisible();
	await page.getByLabel('Issuer').fill(provider.issuer);
	await page.getByRole('button', { name: 'Test connection' }).click();
	await expect(page.getByText(/Client ID and secret: .*invalid_client/)).toBeVisible();
	await page.getByLabel('Client secret', { exact: true }).fill(CLIENT_SECRET);
	await page.getByRole('button', { name: 'Test connection' }).click();
	await expect(page.getByText('Client ID and secret: fine')).toBeVisible();
	await expect(page.getByText(`${baseUrl()}/api/sso/callback`)).toBeVisible();

	await page.getByRole('switch', { name: 'Rules decide about roles' }).click();
	await page.getByRole('button', { name: 'Add rule' }).click();
	await page.getByLabel('Value of rule 1').fill('laboratory');
	await page.getByLabel('Role of rule 1').selectOption('developer');
	await page.getByRole('switch', { name: 'Teams follow groups' }).click();
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	await expect(page.getByRole('button', { name: 'Saved' })).toBeVisible();
	await expect(page.getByText('One is stored. Leave this empty to keep it.')).toBeVisible();
	await page.setViewportSize({ width: 390, height: 844 });
	await expectNoOverflow(page);
	await page.setViewportSize({ width: 1440, height: 900 });

	const login = `zoe-${Date.now()}`;
	const email = `${login}@fairbridge.example`;
	provider.people[login] = { email, name: 'Zoe Adler', groups: ['laboratory', 'Optics'] };
	const away = await browser.newContext({ baseURL });
	await prefer(away, 'light', 'en');
	const visitor = await away.newPage();
	await visitor.goto(`/dashboard/${owner.orgId}/documents`);
	await expect(visitor).toHaveURL(/log-in\?next=/);
	await visitor.getByRole('button', { name: 'Continue with SSO' }).click();
	await logInAt(visitor, login);
	await expect(visitor.getByRole('heading', { level: 1, name: 'Knowledge' })).toBeVisible();
	await expect(visitor.getByRole('button', { name: /account of Zoe Adler/ })).toBeVisible();
	await away.close();

	await owner.open('settings/members');
	await expect(page.getByRole('row', { name: new RegExp(email) })).toContainText('Developer');
	await owner.open('settings/teams');
	await expect(page.getByText('Optics')).toBeVisible();

	// Somebody else with the same address is refused, and told what to do.
	const impostor = `mallory-${Date.now()}`;
	provider.people[impostor] = { email, name: 'Zoe Adler' };
	const other = await browser.newContext({ baseURL });
	await prefer(other, 'light', 'en');
	const stranger = await other.newPage();
	await stranger.goto('/log-in');
	await stranger.getByRole('button', { name: 'Continue with SSO' }).click();
	await logInAt(stranger, impostor);
	await expect(stranger).toHaveURL(/log-in\?error=linked_otherwise&recovery=ask_admin/);
	await expect(stranger.getByRole('alert')).toContainText('Ask an owner or admin');
	await expectAccessible(stranger);
	await other.close();

	await owner.open('settings/enterprise-sso');
	await page.getByRole('button', { name: 'Remove connection' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Remove connection' }).click();
	await expect(page.getByRole('region', { name: 'Notices' }).getByText('Connection removed')).toBeVisible();
	const signedOut = await browser.newContext({ baseURL });
	await prefer(signedOut, 'light', 'en');
	const form = await signedOut.newPage();
	await form.goto('/log-in');
	await expect(form.getByRole('button', { name: 'Log in', exact: true })).toBeVisible();
	await expect(form.getByRole('button', { name: 'Continue with SSO' })).toHaveCount(0);
	await signedOut.close();
});

test('people sign in at a real provider by OAuth 2.0 alone', async ({ owner, browser, baseURL }) => {
	const { page } = owner;
	await owner.open('settings/enterprise-sso');
	await page.getByLabel('Provider', { exact: true }).selectOption('oauth2');
	await page.getByRole('button', { name: 'Test connection' }).click();
	await expect(page.getByText('This is needed.').first()).toBeVisible();
	await page.getByLabel('Authorization URL', { exact: true }).fill(`${provider.issuer}/auth`);
	await page.getByLabel('Token URL', { exact: true }).fill(`${provider.issuer}/token`);
	await page.getByLabel('Userinfo URL', { exact: true }).fill(`${provider.issuer}/nowhere`);
	await page.getByLabel('Client ID', { exact: true }).fill(CLIENT);
	await page.getByLabel('Client secret', { exact: true }).fill(CLIENT_SECRET);
	for (const scope of ['openid', 'email', 'profile']) {
		await page.getByLabel('Scopes', { exact: true }).fill(scope);
		await page.getByLabel('Scopes', { exact: true }).press('Enter');
	}
	await page.getByRole('button', { name: 'Test connection' }).click();
	await expect(page.getByText(/Userinfo URL: .*404/)).toBeVisible();
	await page.getByLabel('Userinfo URL', { exact: true }).fill(`${provider.issuer}/me`);
	await page.getByRole('button', { name: 'Test connection' }).click();
	for (const step of ['Authorization URL', 'Userinfo URL', 'Client ID and secret'])
		await expect(page.getByText(`${step}: fine`)).toBeVisible();
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	await expect(page.getByRole('button', { name: 'Saved' })).toBeVisible();
	await expect(page.getByText('One is stored. Leave this empty to keep it.')).toBeVisible();
	await page.setViewportSize({ width: 320, height: 844 });
	await expectNoOverflow(page);
	await page.setViewportSize({ width: 1440, height: 900 });

	const login = `ines-${Date.now()}`;
	const email = `${login}@fairbridge.example`;
	provider.people[login] = { email, name: 'Ines Adler' };
	const away = await browser.newContext({ baseURL });
	await prefer(away, 'light', 'en');
	const visitor = await away.newPage();
	await visitor.goto(`/dashboard/${owner.orgId}/documents`);
	await visitor.getByRole('button', { name: 'Continue with SSO' }).click();
	await logInAt(visitor, login);
	await expect(visitor.getByRole('heading', { level: 1, name: 'Knowledge' })).toBeVisible();
	await expect(visitor.getByRole('button', { name: /account of Ines Adler/ })).toBeVisible();
	await away.close();

	await owner.open('settings/enterprise-sso');
	await page.getByRole('button', { name: 'Remove connection' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Remove connection' }).click();
	await expect(page.getByRole('region', { name: 'Notices' }).getByText('Connection removed')).toBeVisible();
});

test('people sign in at a real identity provider by SAML', async ({ owner, browser, baseURL }) => {
	const idp = await startSamlProvider();
	const { page } = owner;
	await owner.open('settings/enterprise-sso');
	await page.getByLabel('Provider', { exact: true }).selectOption('saml');
	const own = await page.getByText(/\/api\/sso\/saml\/[0-9a-f-]+\/metadata$/).innerText();
	await page.getByLabel('Metadata URL', { exact: true }).fill(idp.metadata);
	await page.getByRole('button', { name: 'Import' }).click();
	await expect(page.getByText('Metadata imported.')).toBeVisible();
	await expect(page.getByLabel('Sign-on URL', { exact: true })).toHaveValue(idp.portal);
	await expect(page.getByLabel('Signing certificates', { exact: true })).toHaveValue(/BEGIN CERTIFICATE/);
	await page.getByRole('switch', { name: 'Assertions must be encrypted' }).click();
	await page.getByLabel(/^Certificate of this Tale/).fill(OWN.certificate);
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	await expect(page.getByText('Encrypted assertions need a private key.')).toBeVisible();
	await page.getByLabel(/^Private key of this Tale/).fill(OWN.key);
	await page.getByRole('switch', { name: 'Teams follow groups' }).click();
	await page.getByRole('button', { name: 'Test connection' }).click();
	await expect(page.getByText('Sign-on URL: fine')).toBeVisible();
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	await expect(page.getByRole('button', { name: 'Saved' })).toBeVisible();
	await expect(page.getByText('One is stored. Leave this empty to keep it.')).toBeVisible();
	await page.setViewportSize({ width: 320, height: 844 });
	await expectNoOverflow(page);
	await page.setViewportSize({ width: 1440, height: 900 });
	idp.register(await (await page.request.get(own)).text(), true);

	const login = `yara-${Date.now()}`;
	const email = `${login}@fairbridge.example`;
	idp.people[login] = { email, name: 'Yara Adler', group: 'Acoustics' };
	const logIn = async (visitor: Page) => {
		await visitor.getByLabel('Login').fill(login);
		await visitor.getByRole('button', { name: 'Sign in' }).click();
	};
	// With a question, which the browser's cookie ties to the answer that another site posts.
	const away = await browser.newContext({ baseURL });
	await prefer(away, 'light', 'en');
	const visitor = await away.newPage();
	await visitor.goto(`/dashboard/${owner.orgId}/documents`);
	await visitor.getByRole('button', { name: 'Continue with SSO' }).click();
	await logIn(visitor);
	await expect(visitor.getByRole('heading', { level: 1, name: 'Knowledge' })).toBeVisible();
	await expect(visitor.getByRole('button', { name: /account of Yara Adler/ })).toBeVisible();
	await away.close();
	await owner.open('settings/teams');
	await expect(page.getByText('Acoustics')).toBeVisible();

	// From the provider's own pages, without a question.
	const portal = await browser.newContext({ baseURL });
	await prefer(portal, 'light', 'en');
	const begun = await portal.newPage();
	await begun.goto(idp.portal);
	await logIn(begun);
	await expect(begun.getByRole('button', { name: /account of Yara Adler/ })).toBeVisible();
	await portal.close();

	// What is not encrypted any more is refused, in words.
	idp.register(await (await page.request.get(own)).text(), false);
	const plain = await browser.newContext({ baseURL });
	await prefer(plain, 'light', 'en');
	const refused = await plain.newPage();
	await refused.goto('/log-in');
	await refused.getByRole('button', { name: 'Continue with SSO' }).click();
	await logIn(refused);
	await expect(refused).toHaveURL(/log-in\?error=not_believed&recovery=again/);
	await expect(refused.getByRole('alert')).toContainText('could not be verified');
	await plain.close();

	await owner.open('settings/enterprise-sso');
	await page.getByRole('button', { name: 'Remove connection' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Remove connection' }).click();
	await expect(page.getByRole('region', { name: 'Notices' }).getByText('Connection removed')).toBeVisible();
	idp.stop();
});

test('the sign-in page shows refusals as text and offers another step where Entra wants one', async ({
	browser,
	baseURL
}) => {
	const context = await browser.newContext({ baseURL });
	await prefer(context, 'dark', 'en');
	const page = await context.newPage();
	await page.goto(`/log-in?error=${encodeURIComponent('<img src=x onerror=alert(1)>')}&error_code=AADSTS999999`);
	await expect(page.getByRole('alert')).toContainText('<img src=x onerror=alert(1)>');
	await expect(page.getByRole('button', { name: 'Complete multi-factor sign-in' })).toHaveCount(0);
	await page.goto('/log-in?error=provider_refused&error_code=AADSTS50076&recovery=again');
	await expect(page.getByRole('button', { name: 'Complete multi-factor sign-in' })).toBeVisible();
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Try again' }).click();
	await expect(page).toHaveURL(/\/log-in$/);
	await expect(page.getByRole('alert')).toHaveCount(0);
	await context.close();
});
