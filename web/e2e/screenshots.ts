/**
 * Pictures of every screen into `web/screenshots`: three sizes, the desktop at 200 % zoom and the narrowest column, both
 * themes, all languages. Starts a server of its own with the demo model and a few documents, or uses `TALE_BASE_URL`.
 * `SHOTS=providers,chat`, `SIZES=zoom,reflow`, `THEMES=dark` and `LOCALES=de,fr` take only those.
 */
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { chromium, type Browser, type Page } from '@playwright/test';
import { OWNER, prefer, signIn, type Locale, type Theme } from './support/app.ts';
import { startServer } from './support/server.ts';
import { seed } from './support/seed.ts';

/** Width, height and zoom: a zoomed window has fewer, larger pixels. */
const SIZES = {
	desktop: [1440, 900, 1],
	laptop: [1024, 768, 1],
	phone: [390, 844, 1],
	zoom: [720, 450, 2],
	reflow: [320, 640, 1]
} as const;
/** What the environment asks for, or all. */
function wanted<T extends string>(name: string, all: readonly T[]): T[] {
	const chosen = process.env[name]?.split(',');
	return all.filter((one) => !chosen || chosen.includes(one));
}
const out = join(import.meta.dirname, '../screenshots');

interface Shot {
	name: string;
	path: (at: { orgId: string; threadId?: string; documentId?: string }) => string;
	/** Steps after the page has loaded. */
	act?: (page: Page) => Promise<void>;
	signedOut?: boolean;
}

const org = (path: string) => (at: { orgId: string }) => `/dashboard/${at.orgId}/${path}`;
const SHOTS: Shot[] = [
	{ name: 'log-in', path: () => '/log-in', signedOut: true },
	{ name: 'not-found', path: () => '/no-such-page', signedOut: true },
	{ name: 'create-organization', path: () => '/dashboard/create-organization' },
	{ name: 'chat-empty', path: org('chat') },
	{ name: 'chat', path: ({ orgId, threadId }) => `/dashboard/${orgId}/chat/${threadId ?? ''}` },
	{ name: 'home', path: org('home') },
	{ name: 'documents', path: org('documents') },
	{
		name: 'documents-selected',
		path: org('documents'),
		act: async (page) => {
			await page.locator('tbody input[type=checkbox]').first().click();
			await page.locator('tbody input[type=checkbox]').nth(1).click();
		}
	},
	{ name: 'document', path: ({ orgId, documentId }) => `/dashboard/${orgId}/documents?doc=${documentId ?? ''}` },
	{ name: 'settings', path: org('settings') },
	{ name: 'account', path: org('settings/account') },
	{ name: 'factor', path: () => '/2fa-enroll' },
	{ name: 'factor-passkey', path: () => '/2fa-enroll?method=passkey' },
	{
		name: 'factor-app',
		path: () => '/2fa-enroll?method=totp',
		act: async (page) => {
			await page.locator('input[autocomplete=current-password]').fill(OWNER.password);
			await page.keyboard.press('Enter');
			await page.locator('svg.qr').waitFor();
		}
	},
	{ name: 'preferences', path: org('settings/personalization') },
	{ name: 'organization', path: org('settings/organization') },
	{ name: 'branding', path: org('settings/branding') },
	{
		name: 'branding-color',
		path: org('settings/branding'),
		act: (page) => page.locator('form#branding input:not([type=color])').fill('#ffe600')
	},
	{ name: 'teams', path: org('settings/teams') },
	{ name: 'team-add', path: org('settings/teams'), act: (page) => page.locator('header button.primary').click() },
	{ name: 'security', path: org('settings/governance/security') },
	{ name: 'members', path: org('settings/members') },
	{ name: 'member-add', path: org('settings/members'), act: (page) => page.locator('header button.primary').click() },
	{ name: 'providers', path: org('settings/providers') },
	{
		name: 'provider-add',
		path: org('settings/providers'),
		act: (page) => page.locator('header button.primary').click()
	},
	{
		name: 'subscription-add',
		path: org('settings/providers'),
		act: async (page) => {
			await page.locator('header button.primary').click();
			await page.getByRole('button', { name: /^Anthropic/ }).click();
			await page.getByRole('radio').last().check();
		}
	},
	{ name: 'usage', path: org('settings/metrics/usage') },
	{ name: 'own-usage', path: org('settings/usage') },
	{ name: 'content-models', path: org('settings/governance/content-models') },
	{ name: 'logs', path: org('settings/governance/logs') },
	{
		name: 'logs-entry',
		path: org('settings/governance/logs'),
		act: (page) => page.locator('tbody button').first().click()
	},
	{
		name: 'logs-verify',
		path: org('settings/governance/logs'),
		act: (page) => page.locator('header button').last().click()
	},
	{ name: 'logs-blocks', path: org('settings/governance/logs?tab=blocks') },
	{ name: 'logs-activity', path: org('settings/governance/logs?tab=activity') },
	{ name: 'policies-limits', path: org('settings/governance/policies-limits') },
	{ name: 'api-keys', path: org('settings/api/rest') },
	{ name: 'data-residency', path: org('settings/data-residency') },
	{
		name: 'palette',
		path: org('settings/account'),
		act: async (page) => {
			await page.keyboard.press('Control+k');
			await page.locator('input[role="combobox"]').fill('calibration');
			await page.locator('[role="option"]').first().waitFor();
		}
	},
	{
		name: 'shortcuts',
		path: org('chat'),
		act: async (page) => {
			await page.keyboard.press('Control+k');
			await page
				.locator('[role="option"]')
				.filter({ hasText: /shortcuts|Tastenkürzel|Raccourcis/ })
				.click();
			await page.getByRole('dialog').waitFor();
		}
	},
	{
		name: 'account-menu',
		path: org('settings/account'),
		act: async (page) => {
			const button = page.locator('nav button.account');
			if (await button.isVisible()) await button.click();
		}
	}
];

/** Waits until nothing is loading and nothing moves. */
async function settle(page: Page): Promise<void> {
	await page.waitForLoadState('networkidle');
	await page
		.locator('.sk')
		.first()
		.waitFor({ state: 'detached', timeout: 5_000 })
		.catch(() => {});
	await page.evaluate(() =>
		Promise.all(
			document
				.getAnimations()
				.filter((animation) => animation.effect?.getTiming().iterations !== Infinity)
				.map((animation) => animation.finished.catch(() => {}))
		)
	);
}

async function take(browser: Browser, url: string, theme: Theme, locale: Locale): Promise<void> {
	const context = await browser.newContext({ baseURL: url, locale, viewport: { width: 1440, height: 900 } });
	const orgId = await signIn(context);
	await prefer(context, theme, locale, orgId);
	const ids = await seed(context, orgId);
	const guest = await browser.newContext({ baseURL: url, locale, viewport: { width: 1440, height: 900 } });
	await prefer(guest, theme, locale);
	const names = wanted(
		'SHOTS',
		SHOTS.map(({ name }) => name)
	);
	for (const shot of SHOTS.filter(({ name }) => names.includes(name))) {
		for (const size of wanted('SIZES', Object.keys(SIZES) as (keyof typeof SIZES)[])) {
			const [width, height, zoom] = SIZES[size];
			const page = await (shot.signedOut ? guest : context).newPage();
			await page.setViewportSize({ width, height });
			if (zoom !== 1) {
				const session = await page.context().newCDPSession(page);
				const metrics = { width, height, deviceScaleFactor: zoom, mobile: false };
				await session.send('Emulation.setDeviceMetricsOverride', metrics);
			}
			await page.goto(shot.path({ orgId, ...ids }));
			await settle(page);
			await shot.act?.(page);
			await settle(page);
			await page.screenshot({ path: join(out, `${shot.name}-${size}-${theme}-${locale}.png`) });
			await page.close();
		}
	}
	await context.close();
	await guest.close();
}

const own = process.env.TALE_BASE_URL ? undefined : await startServer();
if (own) process.env.TALE_BASE_URL = own.url;
const url = process.env.TALE_BASE_URL ?? '';
if (!['SHOTS', 'SIZES', 'THEMES', 'LOCALES'].some((name) => process.env[name]))
	rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const executablePath = [process.env.TALE_CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome'].find(
	(path) => path && existsSync(path)
);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--no-first-run'] });
try {
	for (const theme of wanted('THEMES', ['light', 'dark'] as const)) {
		for (const locale of wanted('LOCALES', ['en', 'de', 'fr'] as const)) await take(browser, url, theme, locale);
	}
} finally {
	await browser.close();
	await own?.stop();
}
console.log(`pictures are in ${out}`);
