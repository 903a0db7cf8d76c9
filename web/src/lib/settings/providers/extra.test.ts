import { describe, expect, it } from 'vitest';
import { extraText, readExtra } from './extra.ts';

describe('extra fields of a request', () => {
	it('come back as they were typed', () => {
		const fields = { provider: { order: ['eu'] }, service_tier: 'flex' };
		expect(readExtra(extraText(fields))).toEqual(fields);
		expect(extraText({})).toBe('');
		expect(readExtra('  \n')).toEqual({});
	});

	it('are an object or nothing', () => {
		for (const text of ['[]', '"x"', 'null', '3', '{', 'service_tier: flex']) expect(readExtra(text)).toBeNull();
	});
});
