import { describe, expect, it } from 'vitest';
import { completeTail } from './tail';

describe('completeTail', () => {
	const cases: [string, string][] = [
		['Ninety **days', 'Ninety **days**'],
		['Ninety **', 'Ninety '],
		['Ninety **days**', 'Ninety **days**'],
		['Some *word', 'Some *word*'],
		['Some *', 'Some '],
		['Call `foo', 'Call `foo`'],
		['before [', 'before '],
		['before [1', 'before '],
		['before [1]', 'before [1]'],
		['see [the page](https://a.exam', 'see the page'],
		['see [the pa', 'see the pa'],
		['Text\n-', 'Text'],
		['Text\n\n#', 'Text\n'],
		['Text\n\n1', 'Text\n'],
		['Text\n\n| a | b |', 'Text\n\n'],
		['Text\n\n| a | b |\n|---|', 'Text\n\n'],
		['| a | b |\n|---|---|', '| a | b |\n|---|---|'],
		['| a | b |\n|---|---|\n| 1', '| a | b |\n|---|---|\n| 1'],
		['```ts\nconst a = [1, **', '```ts\nconst a = [1, **'],
		['* one\n* two', '* one\n* two'],
		['a ~', 'a ']
	];
	for (const [source, shown] of cases) {
		it(JSON.stringify(source), () => expect(completeTail(source)).toBe(shown));
	}

	it('never changes a finished block', () => {
		const head = 'First **a** [1].\n\n';
		for (const end of ['', '*', '**b', '[', '| x', '- '])
			expect(completeTail(head + end).startsWith('First **a** [1].')).toBe(true);
	});
});
