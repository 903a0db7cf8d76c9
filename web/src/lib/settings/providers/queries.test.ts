import { expect, test, vi } from 'vitest';

vi.mock('#lib/api/client.ts', () => ({ api: {}, send: () => {} }));
const { slugOf } = await import('./queries.ts');

test('a label becomes lower-case words with single hyphens', () => {
	expect(slugOf('Leeds GPU server')).toBe('leeds-gpu-server');
	expect(slugOf('  Büro: Küche!  ')).toBe('buro-kuche');
	expect(slugOf('a'.repeat(63) + ' b')).toBe('a'.repeat(63));
});
test('a label without letters still gives a name', () => expect(slugOf('模型')).toBe('custom-provider'));
