import { expect, expectAccessible, expectNoOverflow, prefer, test } from './support/app.ts';

const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle cx="4" cy="4" r="4" fill="#b45309"/></svg>`;
const svg = (content: string) => ({ name: 'logo.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(content) });

test.afterEach(async ({ owner, baseURL }) => {
	await owner.page.request.delete(`/api/app/branding?orgId=${owner.orgId}`, { headers: { Origin: baseURL ?? '' } });
});

test('an organization gets its colour and its logo, and looks like Tale again', async ({ owner, context, baseURL }) => {
	const { page } = owner;
	const token = (name: string) =>
		page.evaluate((of) => getComputedStyle(document.documentElement).getPropertyValue(of), name);
	await owner.open('settings/branding');
	const colour = page.getByRole('textbox', { name: 'Colour', exact: true });
	const save = page.getByRole('button', { name: 'Save', exact: true });
	await expect(save).toBeDisabled();
	await colour.fill('#ffe6');
	await expect(page.getByText('Six digits are needed')).toBeVisible();
	await expect(save).toBeDisabled();
	await colour.fill('ffe600');
	await expect(colour).toHaveValue('#ffe600');
	await expectAccessible(page);
	expect(await token('--accent')).not.toContain('#ffe600');

	// Somebody else is faster.
	const other = await page.request.put(`/api/app/branding?orgId=${owner.orgId}`, {
		data: { accentColor: '#1e3a8a', version: await version() },
		headers: { Origin: baseURL ?? '' }
	});
	expect(other.ok(), await other.text()).toBe(true);
	await save.click();
	await expect(page.getByText('Someone else changed the branding')).toBeVisible();
	await save.click();
	await expect.poll(() => token('--accent')).toContain('#ffe600');
	await expect(page.getByRole('alert')).toHaveCount(0);
	expect(await token('--accent-text')).not.toContain('light-dark(#ffe600');
	await expectAccessible(page);

	// Images count at once; a bad one changes nothing.
	await page.locator('input[type=file]').first().setInputFiles(svg(LOGO));
	const mark = page.getByRole('button', { name: /switch organization/ }).locator('img');
	await expect(mark).toBeVisible();
	const shown = await mark.getAttribute('src');
	await page
		.locator('input[type=file]')
		.first()
		.setInputFiles(svg(LOGO.replace('<circle', '<circle onclick="a()"')));
	await expect(page.getByRole('alert')).toContainText('scripts');
	expect(await mark.getAttribute('src')).toBe(shown);
	await expect(page.locator('link#icon-light')).toHaveAttribute('href', /favicon-light\?v=/);

	// The next visit begins with the colour, and every page can be read with it, in both themes.
	for (const theme of ['dark', 'light'] as const) {
		await prefer(context, theme, 'en', owner.orgId);
		for (const path of ['settings/branding', 'chat', 'settings/notifications']) {
			await owner.open(path);
			await expect.poll(() => token('--accent')).toContain('#ffe600');
			await expectAccessible(page);
		}
	}
	await owner.open('settings/branding');
	await page.setViewportSize({ width: 320, height: 640 });
	await expect(page.getByRole('button', { name: 'Remove: Logo' })).toBeVisible();
	await expectNoOverflow(page);
	await page.setViewportSize({ width: 1280, height: 800 });

	await page.getByRole('button', { name: 'Reset branding' }).click();
	await page.getByRole('alertdialog').getByRole('button', { name: 'Reset branding' }).click();
	await expect(mark).toHaveCount(0);
	await expect.poll(() => token('--accent')).not.toContain('#ffe600');
	await expect(page.locator('link#icon-light')).toHaveCount(0);
	await expect(page.getByRole('button', { name: 'Reset branding' })).toBeDisabled();

	async function version(): Promise<number> {
		return (await (await page.request.get(`/api/app/branding?orgId=${owner.orgId}`)).json()).version;
	}
});
