import { expect, test } from 'vitest';
import { emailFault } from './email.ts';

test('ordinary addresses pass', () => {
	for (const good of ['maya@fairbridge.com', 'a.b+c@sub.example.org', ' maya@fairbridge.com ', 'dev@localhost'])
		expect(emailFault(good)).toBeUndefined();
});
test('what is missing is named', () => {
	expect(emailFault('')).toBe('empty');
	expect(emailFault('maya')).toBe('at');
	expect(emailFault('maya@')).toBe('at');
	expect(emailFault('maya lind@x.de')).toBe('at');
	expect(emailFault('maya@fairbridge')).toBe('ending');
	expect(emailFault('maya@fairbridge.')).toBe('ending');
});
