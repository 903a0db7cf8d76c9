import { expect, test } from 'vitest';
import { template } from './template.ts';

test('a pattern has a placeholder for every id and no groups', () => {
	expect(template('/')).toBe('/');
	expect(template('/log-in')).toBe('/log-in');
	expect(template('/dashboard/[org]/(home)/chat/[[threadId]]')).toBe('/dashboard/:org/chat/:threadId');
	expect(template('/dashboard/[org]/[...missing]')).toBe('/dashboard/:org/*');
	expect(template(null)).toBe('/*');
});
