import { baseUrl, expect, expectAccessible, expectNoOverflow, prefer, test } from './support/app.ts';

test('the page of model endpoints follows the switch and gives complete examples', async ({ owner }) => {
	const { page, orgId } = owner;
	const put = async (enabled: boolean) => {
		const answer = await page.request.put(`/api/app/governance/policies/model_access?orgId=${orgId}`, {
			data: { value: { modelApi: { enabled } } },
			headers: { Origin: baseUrl() }
		});
		expect(answer.ok(), await answer.text()).toBe(true);
	};
	// The demo model is there already when another scenario added it.
	await page.request.post(`/api/app/providers/demo?orgId=${orgId}`, { headers: { Origin: baseUrl() } });
	await put(false);
	await owner.open('settings/api/models');
	await expect(page.getByText('Model endpoints are off')).toBeVisible();
	await expect(page.getByRole('link', { name: 'Open model access' })).toHaveAttribute(
		'href',
		/governance\/content-models$/
	);
	await expectAccessible(page);

	// Another browser switches them on; the page follows by itself.
	await put(true);
	const models = page.getByRole('region', { name: /^Models/ });
	await expect(models.getByText(/^tale-demo\//)).toBeVisible();
	await expect(page.getByText(`${baseUrl()}/api/v1/anthropic`, { exact: true })).toBeVisible();
	const program = page.locator('pre');
	await expect(program).toContainText('from openai import OpenAI');
	await page.getByLabel('Program', { exact: true }).selectOption('Anthropic · Python');
	await expect(program).toContainText('auth_token=os.environ["TALE_API_KEY"]');
	await expect(program).toContainText(/model="tale-demo\//);
	await expectAccessible(page);
	await prefer(page.context(), 'dark', 'en', orgId);
	await page.reload();
	await page.setViewportSize({ width: 390, height: 844 });
	await expect(program).toBeVisible();
	await expectNoOverflow(page);
	await expectAccessible(page);
	await put(false);
	await expect(page.getByText('Model endpoints are off')).toBeVisible();
});
