import { expect, test, vi } from 'vitest';

vi.mock('$app/paths', () => ({ resolve: (path: string) => path }));
const { sectionOf } = await import('./sections.ts');
const { safeNext } = await import('./paths.ts');

const org = '/dashboard/01890000-0000-7000-8000-000000000000';

test('chats and the phone list belong to Home', () => {
	expect(sectionOf(`${org}/chat`)).toBe('home');
	expect(sectionOf(`${org}/chat/abc`)).toBe('home');
	expect(sectionOf(`${org}/home`)).toBe('home');
});
test('documents belong to Knowledge, settings to Settings', () => {
	expect(sectionOf(`${org}/documents`)).toBe('knowledge');
	expect(sectionOf(`${org}/settings/members`)).toBe('settings');
});
test('pages outside the sections light no tile', () => expect(sectionOf('/dashboard/switching')).toBeUndefined());
test('only addresses of this app may follow sign-in', () => {
	expect(safeNext(`${org}/chat?x=1`)).toBe(`${org}/chat?x=1`);
	for (const bad of [null, '', 'https://evil.example', '//evil.example', '/\\evil.example', 'javascript:1', '/log-in'])
		expect(safeNext(bad)).toBeUndefined();
	// What browsers drop before they read an address.
	for (const dropped of ['\t', '\n', '\r', '\0', ' ', '\u007f', '\\'])
		for (const bad of [`/${dropped}/evil.example`, `${dropped}//evil.example`, `${org}/chat${dropped}`])
			expect(safeNext(bad), JSON.stringify(bad)).toBeUndefined();
});
