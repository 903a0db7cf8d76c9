/** Every language, both themes, desktop and phone: chat, documents and Home come up complete and accessible. */
import {
	expect,
	expectAccessible,
	expectNoOverflow,
	prefer,
	signIn,
	test,
	type Locale,
	type Theme
} from './support/app.ts';

const WORDS: Record<Locale, { placeholder: string; chat: string; upload: string }> = {
	en: { placeholder: 'Ask about your documents', chat: 'New chat', upload: 'Upload documents' },
	de: { placeholder: 'Frag deine Dokumente', chat: 'Neuer Chat', upload: 'Dokumente hochladen' },
	fr: { placeholder: 'Interrogez vos documents', chat: 'Nouvelle conversation', upload: 'Importer des documents' }
};

for (const locale of ['en', 'de', 'fr'] as const) {
	for (const theme of ['light', 'dark'] as Theme[]) {
		test(`chat and documents in ${locale}, ${theme}`, async ({ page, context }) => {
			const orgId = await signIn(context);
			await prefer(context, theme, locale, orgId);
			const words = WORDS[locale];

			await page.goto(`/dashboard/${orgId}/chat`);
			await expect(page.getByPlaceholder(words.placeholder)).toBeVisible();
			await expect(page.getByRole('link', { name: words.chat }).first()).toBeVisible();
			expect(await page.evaluate(() => document.documentElement.lang)).toBe(locale);
			await expectAccessible(page);

			await page.goto(`/dashboard/${orgId}/documents`);
			await expect(page.getByRole('button', { name: words.upload }).first()).toBeVisible();
			await expectAccessible(page);

			await page.setViewportSize({ width: 390, height: 844 });
			await expectNoOverflow(page);
			await page.goto(`/dashboard/${orgId}/home`);
			await expect(page.getByRole('link', { name: words.chat }).first()).toBeVisible();
			await expectNoOverflow(page);
			await expectAccessible(page);
			await page.goto(`/dashboard/${orgId}/chat`);
			await expect(page.getByPlaceholder(words.placeholder)).toBeVisible();
			await expectNoOverflow(page);
			await expectAccessible(page);
		});
	}
}
