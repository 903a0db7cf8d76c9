import { describe, expect, it } from 'vitest';
import { passagesOf, readAnswer } from './answer';
import type { Part } from './types';

const search: Part[] = [
	{ type: 'reasoning', text: 'Look first.' },
	{ type: 'tool-call', id: 's', name: 'rag_search', input: { action: 'search', query: 'notice period' } },
	{
		type: 'tool-result',
		id: 's',
		name: 'rag_search',
		output: {
			dense: false,
			rows: [
				{
					cite: 1,
					kind: 'document',
					title: 'Keller.pdf',
					ref: 'f1',
					documentId: 'd1',
					chunkId: 'c1',
					page: 7,
					snippet: 'ninety days'
				},
				{
					cite: 2,
					kind: 'document',
					title: 'Brandt.docx',
					ref: 'f2',
					documentId: 'd2',
					chunkId: 'c2',
					snippet: 'sixty days'
				}
			]
		}
	}
];

describe('readAnswer', () => {
	it('resolves marks from search rows while the answer streams', () => {
		const answer = readAnswer([...search, { type: 'text', text: 'Ninety [1].' }]);
		expect(answer.citations.get(1)).toMatchObject({ title: 'Keller.pdf', page: 7, passage: 'ninety days' });
		expect(answer.sources).toEqual([]);
		expect(answer.steps).toEqual([
			{ id: 's', kind: 'search', subject: 'notice period', state: 'done', found: 2, keywordsOnly: true }
		]);
	});

	it('lists what was cited, then what was read', () => {
		const answer = readAnswer([
			...search,
			{ type: 'tool-call', id: 'r', name: 'rag_fetch', input: '{"ref":"f2"}' },
			{
				type: 'tool-result',
				id: 'r',
				name: 'rag_fetch',
				output: { title: 'Brandt.docx', documentId: 'd2', text: '…', totalLength: 3 }
			},
			{ type: 'text', text: 'Ninety [1].' },
			{
				type: 'citation',
				number: 1,
				documentId: 'd1',
				fileId: 'f1',
				title: 'Keller.pdf',
				passage: 'ninety days',
				chunkId: 'c1',
				page: 7
			}
		]);
		expect(answer.sources.map((source) => [source.number, source.title])).toEqual([
			[1, 'Keller.pdf'],
			[null, 'Brandt.docx']
		]);
		expect(answer.steps[1]).toMatchObject({ kind: 'read', subject: 'Brandt.docx', state: 'done' });
		expect([...answer.citations.keys()], 'uncited rows are dropped').toEqual([1]);
		expect(passagesOf(answer, { kind: 'document', id: 'd1' }).map((citation) => citation.number)).toEqual([1]);
	});

	it('names a running read by the title the search gave', () => {
		const answer = readAnswer([...search, { type: 'tool-call', id: 'r', name: 'rag_fetch', input: { ref: 'f1' } }]);
		expect(answer.steps[1]).toEqual({ id: 'r', kind: 'read', subject: 'Keller.pdf', state: 'running' });
	});

	it('names a web page by its host and links to it', () => {
		const answer = readAnswer([
			{ type: 'tool-call', id: 'w', name: 'web_fetch', input: { url: 'https://docs.example/a/b' } },
			{
				type: 'tool-result',
				id: 'w',
				name: 'web_fetch',
				output: { title: 'Page', url: 'https://docs.example/a/b', text: '…' }
			}
		]);
		expect(answer.steps[0]).toMatchObject({ kind: 'read', subject: 'docs.example', state: 'done' });
		expect(answer.sources[0]).toMatchObject({ title: 'Page', url: 'https://docs.example/a/b', what: null });
	});

	it('opens a file of the chat itself where no document of the library holds it', () => {
		const rows = [{ cite: 1, kind: 'file', title: 'notes.txt', ref: 'f9', chunkId: 'c9', snippet: 'blue' }];
		const running = readAnswer([{ type: 'tool-result', id: 's', name: 'rag_search', output: { rows } }]);
		const what = { kind: 'file', id: 'f9' } as const;
		expect(running.citations.get(1)?.what).toEqual(what);
		const settled = readAnswer([
			{ type: 'citation', number: 1, fileId: 'f9', title: 'notes.txt', passage: 'blue', chunkId: 'c9' }
		]);
		expect(settled.sources[0]?.what).toEqual(what);
		expect(passagesOf(settled, what)).toHaveLength(1);
	});

	it('keeps text from before and after a tool call together, in order', () => {
		const answer = readAnswer([{ type: 'text', text: 'Let me check.' }, ...search, { type: 'text', text: 'Done.' }]);
		expect(answer.text).toBe('Let me check.\n\nDone.');
		expect(answer.reasoning).toBe('Look first.');
	});

	it('shows a failed step with its reason and survives odd shapes', () => {
		const answer = readAnswer([
			{ type: 'tool-call', id: 'a', name: 'rag_search', input: null },
			{
				type: 'tool-result',
				id: 'a',
				name: 'rag_search',
				output: { error: 'The index is being rebuilt.' },
				isError: true
			},
			{ type: 'tool-result', id: 'b', name: 'surprise', output: 'not json' },
			{ type: 'opaque' }
		]);
		expect(answer.steps).toEqual([
			{ id: 'a', kind: 'list', subject: '', state: 'failed', reason: 'The index is being rebuilt.' },
			{ id: 'b', kind: 'call', subject: 'surprise', state: 'done' }
		]);
	});
});
