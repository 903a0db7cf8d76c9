import { expect, test } from 'vitest';
import { BROKER_VARIABLES, KEY_VARIABLES, variable } from './variable.ts';

test('the name of a variable gets its beginning once', () => {
	expect(variable(KEY_VARIABLES, ' ACME ')).toBe('TALE_PROVIDER_KEY_ACME');
	expect(variable(KEY_VARIABLES, 'TALE_PROVIDER_KEY_ACME')).toBe('TALE_PROVIDER_KEY_ACME');
	expect(variable(BROKER_VARIABLES, 'POOL')).toBe('TALE_TOKEN_SOURCE_POOL');
	expect(variable(KEY_VARIABLES, ' ')).toBe('');
});
