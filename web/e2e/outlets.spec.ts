/** What pages tell outward: views for the statistics and errors for the reports, by way of their own origin. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { Page } from '@playwright/test';
import { expect, ORGANIZATION, OWNER, test } from './support/app.ts';
import { startServer } from './support/server.ts';

const WEBSITE = '8f8b2f3e-1c1a-4d6e-9a55-3f3f8d8f0a11';
const TOKEN = 'collector-token-0123';

/** Sends what it is given, as Umami's script does, and what that may never send besides. */
const SCRIPT = `
	const at = document.currentScript.dataset;
	window.umami = { track: (view) => fetch(at.hostUrl + '/api/send', {
		method: 'POST',
		headers: { 'content-type': 'application/json' },
		body: JSON.stringify({ type: 'event', payload: { ...view, title: document.title, name: location.href } })
	}) };
`;

interface Asked {
	path: string;
	headers: IncomingHttpHeaders;
	body: string;
}

/** A collector and a service for reports that write down what they are asked. */
async function record(): Promise<{ url: string; asked: Asked[]; broken: { now: boolean }; stop: () => void }> {
	const asked: Asked[] = [];
	const broken = { now: false };
	const server = createServer((request, response) => {
		let body = '';
		request.on('data', (part) => (body += part));
		request.on('end', () => {
			asked.push({ path: request.url ?? '', headers: request.headers, body });
			if (broken.now) response.writeHead(500).end();
			else if (request.url === '/_collect/script.js') response.end(SCRIPT);
			else response.setHeader('content-type', 'application/json').end('{"cache":"visit"}');
		});
	});
	await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
	const { port } = server.address() as { port: number };
	return { url: `127.0.0.1:${port}`, asked, broken, stop: () => server.close() };
}

async function setUp(page: Page, url: string): Promise<void> {
	await page.goto(url);
	await page.getByLabel('Name').fill(OWNER.name);
	await page.getByLabel('Email').fill(OWNER.email);
	await page.getByLabel('Password', { exact: true }).fill(OWNER.password);
	await page.getByRole('button', { name: 'Continue' }).click();
	await page.getByLabel('Organization name').fill(ORGANIZATION);
	await page.getByRole('button', { name: 'Create organization' }).click();
	await page.getByRole('button', { name: 'Go to Home' }).click();
	await expect(page.getByRole('textbox', { name: 'Message' })).toBeVisible();
}

test('views are counted by their pattern and errors are reported, both without anything private', async ({
	browser
}) => {
	test.setTimeout(120_000);
	const service = await record();
	const server = await startServer({
		BASE_PATH: '/app',
		UMAMI_URL: `http://${service.url}`,
		UMAMI_WEBSITE_ID: WEBSITE,
		UMAMI_PROXY_TOKEN: TOKEN,
		SENTRY_DSN: `http://publickey@${service.url}/7`,
		SENTRY_ENVIRONMENT: 'staging',
		SENTRY_TRACES_SAMPLE_RATE: '1'
	});
	const views = () =>
		service.asked.filter(({ path }) => path === '/_collect/api/send').map(({ body }) => JSON.parse(body).payload);
	const reports = () =>
		service.asked
			.filter(({ path }) => path === '/api/7/envelope/')
			.map(({ body }) => JSON.parse(body.split('\n')[2] ?? ''))
			.filter((report) => report.tags.role === 'browser');
	const context = await browser.newContext();
	try {
		const page = await context.newPage();
		await setUp(page, server.url);
		await page.getByRole('link', { name: 'Knowledge' }).first().click();
		await expect.poll(() => views().map(({ url }) => url)).toContain('/dashboard/:org/documents');
		expect(views()[0]).toEqual({
			website: WEBSITE,
			hostname: 'localhost',
			url: '/setup',
			referrer: '',
			language: 'en-GB',
			screen: '1440x900'
		});
		for (const { headers } of service.asked.filter(({ path }) => path.startsWith('/_collect/'))) {
			expect(headers.authorization).toBe(`Bearer ${TOKEN}`);
			expect([headers.cookie, headers.referer]).toEqual([undefined, undefined]);
		}
		const html = await (await page.request.get(server.url)).text();
		for (const secret of [TOKEN, service.url, 'publickey']) expect(html).not.toContain(secret);

		await page.evaluate(() => {
			history.replaceState({}, '', `${location.pathname}?code=once#part`);
			setTimeout(() => {
				throw new TypeError(`cannot open ${location.href}`);
			});
			void Promise.reject(new RangeError('too far'));
		});
		const errors = () => reports().filter(({ exception }) => exception);
		await expect.poll(() => errors().length).toBe(2);
		const fault = errors().find(({ exception }) => exception.values[0].type === 'TypeError');
		expect(fault).toMatchObject({
			level: 'error',
			platform: 'javascript',
			environment: 'staging',
			transaction: '/dashboard/:org/documents'
		});
		expect(fault.exception.values[0].value).toMatch(/^cannot open http:\/\/localhost:\d+\/app\/dashboard\/[^?#]+$/);
		expect(fault.request.headers['User-Agent']).toContain('Chrome');
		const measured = reports().filter(({ type }) => type === 'transaction');
		expect(measured.map(({ contexts }) => contexts.trace.op)).toEqual(
			expect.arrayContaining(['pageload', 'navigation'])
		);
		expect(JSON.stringify([views(), reports()])).not.toMatch(/once|cookie|Secret|"title"/i);

		await test.step('a collector that fails disturbs nobody', async () => {
			service.broken.now = true;
			const failed: string[] = [];
			page.on('pageerror', (error) => failed.push(String(error)));
			await page.reload();
			await page.getByRole('link', { name: 'Home' }).first().click();
			await expect(page.getByRole('textbox', { name: 'Message' })).toBeVisible();
			expect(failed).toEqual([]);
			service.broken.now = false;
		});

		await test.step('who declines is not counted', async () => {
			await context.clearCookies();
			await context.addInitScript(() => Object.defineProperty(navigator, 'globalPrivacyControl', { value: true }));
			const quiet = await context.newPage();
			const asked: string[] = [];
			quiet.on('request', (request) => asked.push(new URL(request.url()).pathname));
			await quiet.goto(`${server.url}/log-in`);
			// Measured pages are no statistics: what they tell comes after what would have been counted.
			await expect.poll(() => asked).toContain('/app/_reports');
			expect(asked.filter((path) => path.startsWith('/app/_a/'))).toEqual([]);
		});
	} finally {
		await context.close();
		await server.stop();
		service.stop();
	}
});
