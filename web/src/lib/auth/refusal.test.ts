import { expect, test } from 'vitest';
import { refusalOf } from './refusal.ts';

const of = (query: string) => refusalOf(new URLSearchParams(query));

test('known keys are sentences, unknown ones stay as they are', () => {
	expect(of('')).toBeNull();
	expect(of('error=no_seat&recovery=ask_admin')?.text).toContain('not a member');
	expect(of('error=Some+plain+reason&error_code=AADSTS999999')).toMatchObject({
		text: 'Some plain reason',
		code: 'AADSTS999999',
		mfa: false
	});
	expect(of('error=constructor')?.text).toBe('constructor');
	expect(of('error=<img onerror>')?.text).toBe('<img onerror>');
	expect(of(`error=${'x'.repeat(5000)}`)?.text).toHaveLength(300);
});

test('codes of Entra that another step answers offer it', () => {
	for (const code of ['AADSTS50076', 'AADSTS50079', 'AADSTS53003'])
		expect(of(`error=provider_refused&error_code=${code}`)?.mfa).toBe(true);
	expect(of('error=provider_refused&error_code=AADSTS50105')).toMatchObject({ mfa: false, recovery: null });
});
