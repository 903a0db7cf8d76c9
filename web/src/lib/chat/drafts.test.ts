import { describe, expect, it } from 'vitest';
import { Drafts, type DraftStorage } from './drafts';

function memory(initial: Record<string, string> = {}): DraftStorage & { data: Record<string, string> } {
	const data = { ...initial };
	return {
		data,
		getItem: (key) => data[key] ?? null,
		setItem: (key, value) => void (data[key] = value),
		removeItem: (key) => void delete data[key]
	};
}

describe('Drafts', () => {
	it('outlives the page, one text per conversation', () => {
		const storage = memory();
		new Drafts('o', 'u', storage).set('a', 'half a thought');
		const later = new Drafts('o', 'u', storage);
		expect(later.get('a')).toBe('half a thought');
		expect(later.get('b')).toBe('');
		expect(new Drafts('o', 'other', storage).get('a')).toBe('');
	});

	it('forgets blank text and cleans up', () => {
		const storage = memory();
		const drafts = new Drafts('o', 'u', storage);
		drafts.set('a', 'x');
		drafts.set('a', '  \n');
		expect(drafts.has('a')).toBe(false);
		expect(storage.data).toEqual({});
	});

	it('tells when a conversation gains or loses its draft, not on every key', () => {
		const drafts = new Drafts('o', 'u', memory());
		let told = 0;
		const stop = drafts.subscribe(() => told++);
		drafts.set('a', 'x');
		drafts.set('a', 'xy');
		drafts.set('a', '');
		stop();
		drafts.set('a', 'z');
		expect(told).toBe(2);
	});

	it('works without storage, with broken storage and with broken content', () => {
		const refusing: DraftStorage = {
			getItem: () => '{"not":"a list"}',
			setItem: () => {
				throw new DOMException('full', 'QuotaExceededError');
			},
			removeItem: () => undefined
		};
		for (const storage of [null, refusing, memory({ 'tale.drafts.o.u': '[[1,2],["a"],["b","kept"]' })]) {
			const drafts = new Drafts('o', 'u', storage);
			drafts.set('a', 'text');
			expect(drafts.get('a')).toBe('text');
		}
		expect(new Drafts('o', 'u', memory({ 'tale.drafts.o.u': '[[1,2],["a"],["b","kept"]]' })).get('b')).toBe('kept');
	});

	it('keeps the newest two hundred', () => {
		const drafts = new Drafts('o', 'u', memory());
		for (let n = 0; n < 205; n++) drafts.set(`chat-${n}`, 'text');
		expect(drafts.keys().size).toBe(200);
		expect(drafts.has('chat-0')).toBe(false);
		expect(drafts.has('chat-204')).toBe(true);
	});
});
