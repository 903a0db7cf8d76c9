import { describe, expect, it } from 'vitest';
import { applyEvent, type Turn } from './turn';
import type { ThreadEvent } from './types';

const ids = { threadId: 't', messageId: 'm' };
const run = (events: ThreadEvent[], from: Turn | null = null) => events.reduce(applyEvent, from);
const start: ThreadEvent = { kind: 'turn', ...ids, status: 'queued', parts: [] };

describe('applyEvent', () => {
	it('folds a whole turn', () => {
		const turn = run([
			start,
			{ kind: 'delta', ...ids, part: 'reasoning', index: 0, text: 'Let me ' },
			{ kind: 'delta', ...ids, part: 'reasoning', index: 0, text: 'look.' },
			{
				kind: 'part',
				...ids,
				index: 1,
				value: { type: 'tool-call', id: 'c', name: 'rag_search', input: { query: 'q' } }
			},
			{ kind: 'part', ...ids, index: 2, value: { type: 'tool-result', id: 'c', name: 'rag_search', output: {} } },
			{ kind: 'delta', ...ids, part: 'text', index: 3, text: 'Ninety' },
			{ kind: 'delta', ...ids, part: 'text', index: 3, text: ' days [1].' },
			{ kind: 'settled', ...ids, status: 'complete' }
		]);
		expect(turn?.parts.map((part) => part.type)).toEqual(['reasoning', 'tool-call', 'tool-result', 'text']);
		expect(turn?.parts[3]).toEqual({ type: 'text', text: 'Ninety days [1].' });
		expect(turn).toMatchObject({ phase: 'settled', status: 'complete' });
	});

	it('resumes from a snapshot in the middle of a sentence', () => {
		const turn = run([
			{ kind: 'turn', ...ids, status: 'streaming', parts: [{ type: 'text', text: 'Half a ' }] },
			{ kind: 'delta', ...ids, part: 'text', index: 0, text: 'sentence.' }
		]);
		expect(turn?.parts).toEqual([{ type: 'text', text: 'Half a sentence.' }]);
	});

	it('ignores what belongs to another message, and everything after the end', () => {
		const running = run([start]);
		expect(
			run([{ kind: 'delta', threadId: 't', messageId: 'other', part: 'text', index: 0, text: 'x' }], running)
		).toBe(running);
		const settled = run([{ kind: 'settled', ...ids, status: 'cancelled' }], running);
		expect(run([{ kind: 'delta', ...ids, part: 'text', index: 0, text: 'late' }], settled)).toBe(settled);
		expect(run([{ kind: 'delta', ...ids, part: 'text', index: 0, text: 'x' }], null)).toBeNull();
	});

	it('creates the part a delta names, and replaces one of another kind', () => {
		const turn = run([
			start,
			{ kind: 'delta', ...ids, part: 'text', index: 2, text: 'a' },
			{ kind: 'delta', ...ids, part: 'reasoning', index: 2, text: 'b' }
		]);
		expect(turn?.parts).toEqual([{ type: 'opaque' }, { type: 'opaque' }, { type: 'reasoning', text: 'b' }]);
	});

	it('never changes the state it was given', () => {
		const running = run([start, { kind: 'delta', ...ids, part: 'text', index: 0, text: 'a' }]);
		const parts = running?.parts;
		run([{ kind: 'delta', ...ids, part: 'text', index: 0, text: 'b' }], running);
		expect(parts).toEqual([{ type: 'text', text: 'a' }]);
	});
});
