import { expect, test } from 'vitest';
import { DEFAULT_POLICY, meets } from '#lib/auth/password.ts';
import { makePassword } from './passphrase.ts';

test('made passwords meet the rules and differ', () => {
	const made = Array.from({ length: 200 }, makePassword);
	expect(made.every((password) => meets(password, DEFAULT_POLICY))).toBe(true);
	expect(new Set(made).size).toBe(200);
});
