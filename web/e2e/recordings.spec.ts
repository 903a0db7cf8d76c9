import { baseUrl, expect, expectAccessible, test } from './support/app.ts';
import { KEY, SPEECH, startVendor } from './support/vendor.ts';

test.skip(() => !process.env.TALE_E2E_PRIVATE_HOSTS, 'the server must allow private provider hosts');

const CALL = { name: 'Call with Leeds.m4a', mimeType: 'audio/mp4', buffer: Buffer.from('pretend sound') };
const NOTES = { name: 'notes.md', mimeType: 'text/markdown', buffer: Buffer.from('# Notes\n\nAsk about Tuesday.') };

test('a recording needs a transcription model, and becomes text that the model reads', async ({ owner }) => {
	const { page, orgId } = owner;
	const vendor = await startVendor();
	const doors = { query: `orgId=${orgId}`, headers: { Origin: baseUrl() } };
	try {
		// Without a model: the reason before anything is uploaded, and the rest of the selection goes its way.
		await owner.open('chat');
		await expect(page.getByRole('textbox', { name: 'Message' })).toBeVisible();
		const slots: string[] = [];
		page.on('request', (request) => {
			if (request.method() === 'POST' && request.url().includes('/api/app/uploads'))
				slots.push(request.postData() ?? '');
		});
		const picker = page.locator('form input[type=file]');
		await picker.setInputFiles([CALL, NOTES]);
		const dialog = page.getByRole('dialog', { name: 'Recordings can’t be transcribed' });
		await expect(dialog).toContainText('Left out: Call with Leeds.m4a');
		await expectAccessible(page);
		await expect(page.getByRole('listitem').filter({ hasText: 'notes.md' })).toBeVisible();
		expect(slots.join()).toContain('notes.md');
		expect(slots.join()).not.toContain('Call with Leeds');
		await dialog.getByRole('link', { name: 'Open transcription settings' }).click();
		await expect(page.getByRole('heading', { name: 'Audio transcription model' })).toBeVisible();
		await expect(page.getByText('No transcription model', { exact: true })).toBeVisible();
		await expectAccessible(page);

		const models = [
			{ id: 'leeds-ears', contextWindow: 1000, purposes: ['transcription'] },
			{
				id: 'leeds-chat',
				contextWindow: 32000,
				purposes: ['chat'],
				capabilities: { tools: false, vision: false, reasoning: false }
			}
		];
		const data = {
			name: 'leeds-ears',
			displayName: 'Leeds ears',
			apiFormat: 'openai',
			baseUrl: vendor.url,
			apiKey: KEY,
			models
		};
		const added = await page.request.post(`${baseUrl()}/api/app/providers?${doors.query}`, {
			data,
			headers: doors.headers
		});
		expect(added.status(), await added.text()).toBe(201);
		await expect(page.getByText('Now leeds-ears from Leeds ears.')).toBeVisible();
		await page
			.getByRole('combobox', { name: 'Audio transcription model' })
			.selectOption({ label: 'leeds-ears (Leeds ears)' });
		await expect(page.getByRole('status').filter({ hasText: 'Transcription model saved' })).toBeAttached();

		// With one: Transcribing…, Transcribed, and the words for the model and for whoever asks.
		await owner.open('chat');
		await page.locator('form input[type=file]').setInputFiles(CALL);
		await expect(page.getByRole('listitem').filter({ hasText: CALL.name })).toContainText('Transcribed');
		await expectAccessible(page);
		await page.getByRole('textbox', { name: 'Message' }).fill('What was agreed?');
		await page.keyboard.press('Enter');
		await expect(
			page
				.getByText('Hello from Leeds.')
				.or(page.getByRole('button', { name: /^View transcript/ }))
				.first()
		).toBeVisible();
		await page.getByRole('button', { name: `View transcript of ${CALL.name}` }).click();
		const transcript = page.getByRole('dialog', { name: 'Transcript' });
		await expect(transcript).toContainText(SPEECH);
		await expectAccessible(page);
		await page.keyboard.press('Escape');
		await expect(page.getByText(SPEECH)).toBeHidden();
	} finally {
		await page.request.put(`${baseUrl()}/api/app/governance/policies/transcription_model?${doors.query}`, {
			data: { value: { providerSlug: null, modelId: null } },
			headers: doors.headers
		});
		await page.request.delete(`${baseUrl()}/api/app/providers/leeds-ears?${doors.query}&version=1`, {
			headers: doors.headers
		});
		vendor.stop();
	}
});
