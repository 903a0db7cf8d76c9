import { createHmac } from 'node:crypto';
import type { Browser, BrowserContext, Page } from '@playwright/test';
import { expect, expectAccessible, expectNoOverflow, prefer, test, type Locale } from './support/app.ts';

const PASSWORD = 'Harbour-lantern-43';

/** The code of an authenticator app that was given `secret` (Base32), with a clock that is `steps` of 30 seconds ahead. */
function totp(secret: string, steps = 0): string {
	const bits = [...secret]
		.map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0'))
		.join('');
	const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
	const counter = Buffer.alloc(8);
	counter.writeBigInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
	const mac = createHmac('sha1', key).update(counter).digest();
	const word = mac.readUInt32BE((mac[19] ?? 0) & 15) & 0x7fffffff;
	return String(word % 1_000_000).padStart(6, '0');
}

interface Person {
	email: string;
	context: BrowserContext;
	page: Page;
	orgId: string;
}

/** Somebody with an organization of their own, signed in in a browser of their own. */
async function newcomer(owner: { page: Page; orgId: string }, browser: Browser, url: string, name: string) {
	const origin = { Origin: url };
	const email = `${name.toLowerCase()}.${Date.now()}@fairbridge.example`;
	const data = { email, name, role: 'member', password: PASSWORD };
	const added = await owner.page.request.post(`/api/app/members?orgId=${owner.orgId}`, { data, headers: origin });
	expect(added.ok(), await added.text()).toBe(true);
	const context = await browser.newContext({ baseURL: url });
	await prefer(context, 'light', 'en');
	const page = await context.newPage();
	await logIn(page, email);
	await expect(page).toHaveURL(/\/chat$/);
	const made = await context.request.post('/api/app/organizations', {
		data: { name: `${name} Works ${Date.now()}` },
		headers: origin
	});
	expect(made.ok(), await made.text()).toBe(true);
	const orgId: string = (await made.json()).id;
	return { email, context, page, orgId } satisfies Person;
}

async function logIn(page: Page, email: string): Promise<void> {
	await page.goto('/log-in');
	await page.getByLabel('Email').fill(email);
	await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
	await page.keyboard.press('Enter');
}

/** Goes through the set-up page from its question for the password on; answers the secret and the backup codes. */
async function setUpApp(page: Page): Promise<{ secret: string; codes: string[] }> {
	await expect(page.getByRole('heading', { level: 1, name: 'Set up an authenticator app' })).toBeVisible();
	await expectAccessible(page);
	await page.getByLabel('Password', { exact: true }).fill('not the password');
	await page.keyboard.press('Enter');
	await expect(page.getByText('This is not your current password')).toBeVisible();
	await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
	await page.keyboard.press('Enter');
	await expect(page.getByRole('img', { name: 'QR code for the authenticator app' })).toBeVisible();
	const secret = await page.getByLabel('Or enter this key').inputValue();
	await expectAccessible(page);
	await page.getByLabel('Code', { exact: true }).fill(totp(secret, 5));
	await page.keyboard.press('Enter');
	await expect(page.getByText('This code is wrong or was used before.')).toBeVisible();
	await page.getByLabel('Code', { exact: true }).fill(totp(secret));
	await page.keyboard.press('Enter');
	await expect(page.getByRole('heading', { level: 1, name: 'Keep your backup codes' })).toBeVisible();
	await expectAccessible(page);
	const codes = await page.getByRole('list', { name: 'Backup codes' }).getByRole('listitem').allTextContents();
	expect(codes).toHaveLength(10);
	const saved = page.waitForEvent('download');
	await page.getByRole('button', { name: 'Download' }).click();
	expect((await saved).suggestedFilename()).toBe('tale-platform-backup-codes.txt');
	await page.getByRole('button', { name: 'Done' }).click();
	return { secret, codes };
}

test('an authenticator app is set up, asked for, replaced by backup codes and reset', async ({
	owner,
	browser,
	baseURL
}) => {
	const { page, context, email, orgId } = await newcomer(owner, browser, baseURL ?? '', 'Noa');
	await page.goto(`/dashboard/${orgId}/settings/account`);
	await page.getByRole('link', { name: 'Set up' }).click();
	const { secret, codes } = await setUpApp(page);
	await expect(page).toHaveURL(`/dashboard/${orgId}/settings/account`);
	await expect(page.getByText('On. Backup codes left: 10.')).toBeVisible();
	await expectAccessible(page);

	await context.clearCookies();
	await logIn(page, email);
	await expect(page).toHaveURL(/\/2fa$/);
	// Half of a sign-in opens nothing.
	expect((await context.request.get('/api/app/account')).status()).toBe(401);
	await page.getByLabel('Code', { exact: true }).fill('000000');
	await page.keyboard.press('Enter');
	await expect(page.getByText('This code is wrong or was used before.')).toBeVisible();
	await expectAccessible(page);
	// The code of the set-up counts no more; the next one does already.
	const code = totp(secret, 1);
	await page.getByLabel('Code', { exact: true }).fill(code);
	await page.keyboard.press('Enter');
	await expect(page).toHaveURL(/\/chat$/);

	await context.clearCookies();
	await logIn(page, email);
	await page.getByLabel('Code', { exact: true }).fill(code);
	await page.keyboard.press('Enter');
	await expect(page.getByText('This code is wrong or was used before.')).toBeVisible();
	await page.getByRole('button', { name: 'Use a backup code' }).click();
	await page.getByLabel('Backup code').fill(codes[0] ?? '');
	await page.keyboard.press('Enter');
	await expect(page).toHaveURL(/\/chat$/);

	await page.goto(`/dashboard/${orgId}/settings/account`);
	await expect(page.getByText('On. Backup codes left: 9.')).toBeVisible();
	await page.getByRole('button', { name: 'New backup codes' }).click();
	await page.getByLabel('Current password').fill(PASSWORD);
	await page.keyboard.press('Enter');
	await expect(page.getByRole('list', { name: 'Backup codes' }).getByRole('listitem')).toHaveCount(10);
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Done' }).click();
	await expect(page.getByText('On. Backup codes left: 10.')).toBeVisible();

	// The person belongs to two organizations, so an administrator of one resets nothing.
	await owner.open('settings/members');
	await owner.page.getByRole('searchbox').fill(email);
	const row = owner.page.getByRole('row', { name: new RegExp(email) });
	await row.getByRole('button', { name: /Actions for/ }).click();
	await owner.page.getByRole('menuitem', { name: 'Second factors' }).click();
	await owner.page.getByRole('button', { name: 'Reset app' }).click();
	await expectAccessible(owner.page);
	await owner.page.getByRole('alertdialog').getByRole('button', { name: 'Reset app' }).click();
	await expect(owner.page.getByRole('alert')).toContainText('another organization');

	await page.getByRole('button', { name: 'Turn off' }).click();
	await page.getByLabel('Current password').fill(PASSWORD);
	await page.keyboard.press('Enter');
	await expect(page.getByRole('status').filter({ hasText: 'Authenticator app turned off' })).toBeVisible();
	await context.close();
});

test('a passkey is added, logs in alone, finishes a login, is renamed and removed', async ({
	owner,
	browser,
	baseURL
}) => {
	const { page, context, email, orgId } = await newcomer(owner, browser, baseURL ?? '', 'Ida');
	const devtools = await context.newCDPSession(page);
	await devtools.send('WebAuthn.enable');
	await devtools.send('WebAuthn.addVirtualAuthenticator', {
		options: {
			protocol: 'ctap2',
			transport: 'internal',
			hasResidentKey: true,
			hasUserVerification: true,
			isUserVerified: true,
			automaticPresenceSimulation: true
		}
	});
	await page.goto(`/dashboard/${orgId}/settings/account`);
	await page.getByRole('link', { name: 'Add passkey' }).click();
	await expect(page.getByRole('heading', { level: 1, name: 'Add a passkey' })).toBeVisible();
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Add passkey' }).click();
	await expect(page.getByText('Enter a name')).toBeVisible();
	await page.getByLabel('Name', { exact: true }).fill('Work laptop');
	await page.keyboard.press('Enter');
	await expect(page).toHaveURL(`/dashboard/${orgId}/settings/account`);
	await expect(page.getByText('Work laptop')).toBeVisible();
	// The same device once more says so.
	await page.getByRole('link', { name: 'Add passkey' }).click();
	await page.getByLabel('Name', { exact: true }).fill('Again');
	await page.keyboard.press('Enter');
	await expect(page.getByRole('alert')).toContainText('has a passkey for your account already');

	await context.clearCookies();
	await page.goto('/log-in');
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Log in with a passkey' }).click();
	await expect(page).toHaveURL(/\/chat$/);

	await context.clearCookies();
	await logIn(page, email);
	await expect(page).toHaveURL(/\/2fa$/);
	await expectAccessible(page);
	await page.getByRole('button', { name: 'Use a passkey' }).click();
	await expect(page).toHaveURL(/\/chat$/);

	await page.goto(`/dashboard/${orgId}/settings/account`);
	await page.getByRole('button', { name: 'Rename Work laptop' }).click();
	await page.getByLabel('Name', { exact: true }).last().fill('Old laptop');
	await page.keyboard.press('Enter');
	await page.getByRole('button', { name: 'Remove Old laptop' }).click();
	await expectAccessible(page);
	await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).click();
	await expect(page.getByText('None. A passkey logs you in without a password.')).toBeVisible();

	await context.clearCookies();
	await page.goto('/log-in');
	await page.getByRole('button', { name: 'Log in with a passkey' }).click();
	await expect(page.getByRole('alert')).toContainText('This passkey could not be used');
	await context.close();
});

test('an organization that needs a second factor opens once there is one', async ({ owner, browser, baseURL }) => {
	const { page, context, orgId } = await newcomer(owner, browser, baseURL ?? '', 'Tove');
	await page.goto(`/dashboard/${orgId}/settings/governance/security`);
	await page.getByRole('switch', { name: 'Require a second factor' }).click();
	await page.getByLabel('Days to set one up').fill('31');
	const save = page.getByRole('region', { name: 'Second factor' }).getByRole('button', { name: 'Save', exact: true });
	await save.click();
	await expect(page.getByText('Enter a whole number from 0 to 30.')).toBeVisible();
	await page.getByLabel('Days to set one up').fill('0');
	await expectAccessible(page);
	await save.click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Require' }).click();

	// Once it is saved, whoever has none stands before the wall, here and on every other page.
	await expect(page).toHaveURL(/\/2fa-enroll\?.*security/);
	await expect(page.getByText('Your organization needs one.')).toBeVisible();
	await page.goto(`/dashboard/${orgId}/documents`);
	await expect(page).toHaveURL(/\/2fa-enroll\?.*documents/);
	await expect(page.getByText('Your organization needs one.')).toBeVisible();
	for (const locale of ['de', 'fr', 'en'] satisfies Locale[]) {
		await page.evaluate((chosen) => localStorage.setItem('tale.locale', chosen), locale);
		await page.reload();
		await expectAccessible(page);
		await page.setViewportSize({ width: 320, height: 640 });
		await expectNoOverflow(page);
		await page.setViewportSize({ width: 1440, height: 900 });
	}
	const refused = await context.request.get(`/api/app/documents?orgId=${orgId}`);
	expect((await refused.json()).code).toBe('TWO_FACTOR_REQUIRED');
	// The other organization asks for nothing.
	await page.goto(`/dashboard/${owner.orgId}/documents`);
	await expect(page.getByRole('heading', { level: 1, name: 'Knowledge' })).toBeVisible();

	await page.goto(`/dashboard/${orgId}/documents`);
	await page.getByRole('button', { name: 'Continue' }).click();
	await setUpApp(page);
	await expect(page).toHaveURL(`/dashboard/${orgId}/documents`);
	await expect(page.getByRole('heading', { level: 1, name: 'Knowledge' })).toBeVisible();
	await context.close();
});

test('while there is time, pages say until when', async ({ owner, browser, baseURL }) => {
	const { page, context, orgId } = await newcomer(owner, browser, baseURL ?? '', 'Rune');
	const policy = await context.request.put(`/api/app/governance/policies/two_factor_policy?orgId=${orgId}`, {
		data: { value: { enforced: true, gracePeriodDays: 7 } },
		headers: { Origin: baseURL ?? '' }
	});
	expect(policy.ok(), await policy.text()).toBe(true);
	await page.goto(`/dashboard/${orgId}/documents`);
	await expect(page.getByText(/needs a second factor from/)).toBeVisible();
	await expectAccessible(page);
	await page.setViewportSize({ width: 320, height: 640 });
	await expectNoOverflow(page);
	await context.close();
});
