import { existsSync } from 'node:fs';
import { defineConfig } from '@playwright/test';

/** A browser of the system; Playwright's own are never downloaded. */
const browser = [process.env.TALE_CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome'].find(
	(path) => path && existsSync(path)
);

export default defineConfig({
	testDir: './e2e',
	outputDir: './test-results',
	globalSetup: './e2e/support/server.ts',
	// The scenarios share one server and its one owner, as people in an organization do.
	workers: 1,
	fullyParallel: false,
	forbidOnly: !!process.env.CI,
	retries: 0,
	timeout: 60_000,
	expect: { timeout: 10_000 },
	reporter: [['list']],
	use: {
		locale: 'en-GB',
		viewport: { width: 1440, height: 900 },
		trace: 'retain-on-failure',
		launchOptions: {
			executablePath: browser,
			args: [
				'--no-sandbox',
				'--disable-gpu',
				'--disable-background-networking',
				'--disable-component-update',
				'--no-first-run'
			]
		}
	},
	projects: [
		{ name: 'first-run', testMatch: /first-run\.spec\.ts/ },
		{ name: 'scenarios', testIgnore: /first-run\.spec\.ts/, dependencies: ['first-run'] }
	]
});
