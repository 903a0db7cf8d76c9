import { expect, test } from 'vitest';
import { permits } from './access.ts';
import type { ModelAccess } from './policies.ts';

const access = (change: Partial<ModelAccess>): ModelAccess => ({
	enabled: true,
	mode: 'blocklist',
	rules: [],
	modelApi: { enabled: false },
	...change
});
const rule = { allowedModels: [], blockedModels: [] };

test('the warning about defaults judges as the server does', () => {
	const blocked = access({
		rules: [
			{ ...rule, scope: 'default', blockedModels: ['p/a'] },
			{ ...rule, scope: 'role', scopeId: 'editor', blockedModels: ['b'] }
		]
	});
	expect(permits(blocked, 'member', 'p', 'a')).toBe(false);
	expect(permits(blocked, 'editor', 'p', 'a')).toBe(true);
	expect(permits(blocked, 'editor', 'q', 'b')).toBe(false);
	const allowed = access({
		mode: 'allowlist',
		rules: [{ ...rule, scope: 'default', allowedModels: ['p/a', 'p/x/y'], blockedModels: ['p/a'] }]
	});
	expect(permits(allowed, 'member', 'p', 'a')).toBe(false);
	expect(permits(allowed, 'member', 'p', 'x/y')).toBe(true);
	expect(permits(allowed, 'member', 'p', 'b')).toBe(false);
	expect(permits({ ...allowed, enabled: false }, 'member', 'p', 'b')).toBe(true);
});
