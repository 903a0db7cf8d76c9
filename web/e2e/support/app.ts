/** What every scenario needs: the server's address, the owner, a signed-in page, and axe. */
import AxeBuilder from '@axe-core/playwright';
import { test as base, expect, type BrowserContext, type Page } from '@playwright/test';

export const OWNER = {
	name: 'Maya Lindqvist',
	email: process.env.TALE_E2E_EMAIL ?? 'maya@fairbridge.example',
	password: process.env.TALE_E2E_PASSWORD ?? 'Harbour-lantern-42'
};
export const ORGANIZATION = 'Fairbridge Instruments';

export type Theme = 'light' | 'dark';
export type Locale = 'en' | 'de' | 'fr';

export function baseUrl(): string {
	const url = process.env.TALE_BASE_URL;
	if (!url) throw new Error('TALE_BASE_URL is not set');
	return url;
}

/** Signs the context in as the owner; answers the organization's id. Sets the server up when it is new. */
export async function signIn(context: BrowserContext): Promise<string> {
	const origin = { Origin: baseUrl() };
	const session = async () => (await context.request.get(`${baseUrl()}/api/app/session`)).json();
	if ((await session()).setupRequired) {
		const data = { name: OWNER.name, email: OWNER.email, password: OWNER.password, organizationName: ORGANIZATION };
		const answer = await context.request.post(`${baseUrl()}/api/app/setup`, { data, headers: origin });
		expect(answer.ok(), await answer.text()).toBe(true);
	} else {
		const data = { email: OWNER.email, password: OWNER.password };
		const answer = await context.request.post(`${baseUrl()}/api/auth/sign-in/email`, { data, headers: origin });
		expect(answer.ok(), await answer.text()).toBe(true);
	}
	const { organizations } = await session();
	return organizations[0].id;
}

/** Fixes theme and language before the app loads; also on the server, which would otherwise have the last word. */
export async function prefer(context: BrowserContext, theme: Theme, locale: Locale, orgId?: string): Promise<void> {
	await context.addInitScript(
		([chosenTheme, chosenLocale]) => {
			localStorage.setItem('tale.theme', chosenTheme);
			localStorage.setItem('tale.locale', chosenLocale);
		},
		[theme, locale] as const
	);
	if (!orgId) return;
	const answer = await context.request.put(`${baseUrl()}/api/app/preferences?orgId=${orgId}`, {
		data: { locale, theme, customInstructions: { enabled: null, text: '' } },
		headers: { Origin: baseUrl() }
	});
	expect(answer.ok(), await answer.text()).toBe(true);
}

/** Fails with the rule, the element and the reason of every violation of WCAG 2.1 AA. */
export async function expectAccessible(page: Page): Promise<void> {
	// Colours in the middle of a fade are nobody's contrast.
	await page.evaluate(() =>
		Promise.all(
			document
				.getAnimations()
				.filter((a) => a.effect?.getTiming().iterations !== Infinity)
				.map((a) => a.finished.catch(() => {}))
		)
	);
	const { violations } = await new AxeBuilder({ page })
		.withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'])
		.analyze();
	const found = violations.flatMap(({ id, help, nodes }) =>
		nodes.map((node) => `${id}: ${help}\n  ${node.html}\n  ${node.failureSummary}`)
	);
	expect(found.join('\n\n')).toBe('');
}

/** Nothing sticks out sideways. */
export async function expectNoOverflow(page: Page) {
	// A page may still be laying itself out anew after its window was made narrower.
	await expect
		.poll(
			() => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
			'horizontal overflow'
		)
		.toBeLessThanOrEqual(0);
}

interface Fixtures {
	/** A page signed in as the owner, and the organization's id. */
	owner: { page: Page; orgId: string; open: (path: string) => Promise<void> };
}

export const test = base.extend<Fixtures>({
	baseURL: async ({}, use) => use(baseUrl()),
	owner: async ({ page, context }, use) => {
		const orgId = await signIn(context);
		await prefer(context, 'light', 'en', orgId);
		await use({ page, orgId, open: async (path) => void (await page.goto(`/dashboard/${orgId}/${path}`)) });
	}
});
export { expect };
