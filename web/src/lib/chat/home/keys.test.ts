import { describe, expect, it, vi } from 'vitest';

vi.mock('$app/navigation', () => ({ goto: () => Promise.resolve() }));
const { neighbour } = await import('./keys.ts');

describe('neighbour', () => {
	const ids = ['a', 'b', 'c'];
	it('moves through the list and stops at its ends', () => {
		expect(neighbour(ids, 'a', 1)).toBe('b');
		expect(neighbour(ids, 'b', -1)).toBe('a');
		expect(neighbour(ids, 'c', 1)).toBeNull();
		expect(neighbour(ids, 'a', -1)).toBeNull();
	});
	it('starts at the first or the last when nothing is open', () => {
		expect(neighbour(ids, null, 1)).toBe('a');
		expect(neighbour(ids, null, -1)).toBe('c');
		expect(neighbour(ids, 'elsewhere', 1)).toBe('a');
		expect(neighbour([], null, 1)).toBeNull();
	});
});
