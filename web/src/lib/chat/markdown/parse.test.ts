import { describe, expect, it } from 'vitest';
import { inlineText, MarkdownStream, parseMarkdown, plainText, safeHref } from './parse';
import type { Token, Tokens } from 'marked';

const types = (source: string) => parseMarkdown(source).map((block) => block.token.type as string);
const inline = (source: string) => (parseMarkdown(source)[0]!.token as Tokens.Paragraph).tokens as Token[];

describe('parseMarkdown', () => {
	it('reads the blocks of GitHub flavoured Markdown', () => {
		expect(types('# A\n\ntext\n\n- a\n- b\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```rs\nfn a() {}\n```\n')).toEqual([
			'heading',
			'paragraph',
			'list',
			'table',
			'code'
		]);
	});

	it('turns numbers in brackets into citation marks', () => {
		const marks = inline('Ninety days [1], or sixty [2][3] and [4, 5].').filter(
			(token) => (token.type as string) === 'cite'
		);
		expect(marks.map((mark) => (mark as unknown as { numbers: number[] }).numbers)).toEqual([[1], [2], [3], [4, 5]]);
	});

	it('leaves links and words in brackets alone', () => {
		expect(
			inline('[1](https://a.example) and [a] and [12345]').some((token) => (token.type as string) === 'cite')
		).toBe(false);
	});

	it('reads mathematics but not money', () => {
		expect(inline('Costs $5 and $7 today').some((token) => (token.type as string) === 'math')).toBe(false);
		expect(inline('With $a^2$ and \\(b\\)').filter((token) => (token.type as string) === 'math')).toHaveLength(2);
		expect(types('Before\n\n$$\na = b\n$$\n\nafter')).toEqual(['paragraph', 'math', 'paragraph']);
		expect(types('\\[\nx\n\\]\n')).toEqual(['math']);
	});
});

describe('MarkdownStream', () => {
	const answer =
		'# Title\n\nFirst paragraph with **bold** and [1].\n\n- one\n- two\n\n  more of two\n- three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n```ts\nconst a = 1;\n\nconst b = 2;\n```\n\nThe end\n===\n\n$$\nx = 1\n$$\n\n> quote\n\nlast';

	it('ends with the same blocks as parsing at once, however the text is cut', () => {
		for (const size of [1, 3, 7, 40]) {
			const stream = new MarkdownStream();
			let blocks = stream.update('');
			for (let end = 0; end <= answer.length + size; end += size) blocks = stream.update(answer.slice(0, end));
			expect(blocks.map((block) => [block.token.type, block.token.raw.trim()])).toEqual(
				parseMarkdown(answer).map((block) => [block.token.type, block.token.raw.trim()])
			);
		}
	});

	it('keeps the objects of blocks that are finished', () => {
		const stream = new MarkdownStream();
		const before = stream.update('one\n\ntwo\n\nthree');
		const after = stream.update('one\n\ntwo\n\nthree and more\n\nfour');
		expect(after[0]).toBe(before[0]);
		expect(after[1]).toBe(before[1]);
		expect(after[2]).not.toBe(before[2]);
	});

	it('keeps the keys of open blocks while they grow', () => {
		const stream = new MarkdownStream();
		const before = stream.update('one\n\n- a');
		const after = stream.update('one\n\n- a\n- b');
		expect(after.map((block) => block.key)).toEqual(before.map((block) => block.key));
	});

	it('starts over when the text is another one', () => {
		const stream = new MarkdownStream();
		stream.update('one\n\ntwo\n\nthree');
		expect(stream.update('other').map((block) => block.token.raw)).toEqual(['other']);
	});
});

describe('plainText', () => {
	it('drops marks, citation numbers and blank runs', () => {
		expect(plainText('# A\n\nSome **bold** text [1].\n\n\n\n- a\n- b [2]\n\n`x < y` &amp; z')).toBe(
			'A\n\nSome bold text.\n\n- a\n- b\n\nx < y & z'
		);
	});
});

describe('safeHref', () => {
	it('allows web and mail addresses only', () => {
		expect(safeHref('https://a.example/b')).toBe('https://a.example/b');
		expect(safeHref('mailto:a@b.example')).toBe('mailto:a@b.example');
		for (const bad of ['javascript:alert(1)', ' JaVaScript:x', 'data:text/html,x', '/dashboard', 'file:///etc']) {
			expect(safeHref(bad)).toBeUndefined();
		}
	});
});

describe('MarkdownStream while open', () => {
	it('ends as parsing at once after a stream with completed tails', () => {
		const text =
			'A **bold** start [1].\n\n| a | b |\n|---|---|\n| 1 | `x` |\n\n- one\n- two *em*\n\nEnd [2], [link](https://a.example).';
		const stream = new MarkdownStream();
		for (let end = 0; end <= text.length; end++) {
			for (const { token } of stream.update(text.slice(0, end), true)) {
				if (token.type === 'paragraph') expect(inlineText(token.tokens ?? [])).not.toMatch(/\*|\[|\|/);
			}
		}
		expect(stream.update(text).map((block) => block.token.raw.trim())).toEqual(
			parseMarkdown(text).map((block) => block.token.raw.trim())
		);
	});
});
