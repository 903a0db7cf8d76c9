/**
 * Streaming Markdown: text in, block tokens out, with only the tail parsed again.
 *
 * The grammar is GitHub flavoured Markdown (marked's lexer) plus two inline marks of ours: citations
 * `[1]` and mathematics. Raw HTML is never interpreted; the renderer shows it as text.
 *
 * A `MarkdownStream` keeps the tokens of every block that can no longer change and parses again from
 * the start of the last open block. Tokens of settled blocks keep their identity, so a keyed list
 * renders nothing for them. Work per update is proportional to the last block, not to the answer.
 */
import { Lexer, Marked, type Token, type TokenizerAndRendererExtension, type Tokens } from 'marked';
import { completeTail } from './tail';

/** A citation mark: one or more numbers of the answer's sources, as in `[1]` or `[1, 3]`. */
export interface CiteToken {
	type: 'cite';
	raw: string;
	numbers: number[];
}

/** LaTeX source, inline or as a block of its own. */
export interface MathToken {
	type: 'math';
	raw: string;
	tex: string;
	display: boolean;
}

/** One top-level block, with the key the renderer uses (its position in the text). */
export interface Block {
	key: number;
	token: Token;
}

const CITE = /^\[(\d{1,3}(?:\s*,\s*\d{1,3}){0,7})\](?!\()/;

const cite: TokenizerAndRendererExtension = {
	name: 'cite',
	level: 'inline',
	start(src) {
		const at = src.search(/\[\d/);
		return at < 0 ? undefined : at;
	},
	tokenizer(src) {
		const match = CITE.exec(src);
		if (!match) return undefined;
		return { type: 'cite', raw: match[0], numbers: match[1]!.split(',').map((n) => Number(n.trim())) };
	}
};

const INLINE_MATH = [
	/^\\\(((?:[^\\]|\\(?!\)))+?)\\\)/,
	/^\\\[((?:[^\\]|\\(?!\]))+?)\\\]/,
	/^\$\$((?:[^$\\]|\\[\s\S])+?)\$\$/,
	// A single dollar is mathematics only when it hugs its content and no digit follows: "$5 and $7" is money.
	/^\$(?![\s$])((?:[^$\\\n]|\\[^\n])*?[^\s$\\])\$(?![\d$])/
];

const inlineMath: TokenizerAndRendererExtension = {
	name: 'mathInline',
	level: 'inline',
	start(src) {
		const at = src.search(/\\[([]|\$/);
		return at < 0 ? undefined : at;
	},
	tokenizer(src) {
		for (let form = 0; form < INLINE_MATH.length; form++) {
			const match = INLINE_MATH[form]!.exec(src);
			if (match) return { type: 'math', raw: match[0], tex: match[1]!.trim(), display: form === 1 || form === 2 };
		}
		return undefined;
	}
};

const BLOCK_MATH = /^(?:\$\$[ \t]*\n?([\s\S]+?)\n?[ \t]*\$\$|\\\[[ \t]*\n?([\s\S]+?)\n?[ \t]*\\\])[ \t]*(?:\n+|$)/;

const blockMath: TokenizerAndRendererExtension = {
	name: 'mathBlock',
	level: 'block',
	start(src) {
		const at = src.search(/(?:^|\n)(?:\$\$|\\\[)/);
		return at < 0 ? undefined : at;
	},
	tokenizer(src) {
		const match = BLOCK_MATH.exec(src);
		if (!match) return undefined;
		return { type: 'math', raw: match[0], tex: (match[1] ?? match[2] ?? '').trim(), display: true };
	}
};

const engine = new Marked({ gfm: true, breaks: false, extensions: [cite, inlineMath, blockMath] });

function lex(source: string): Token[] {
	return new Lexer(engine.defaults).lex(source);
}

/** Parses a whole text at once. */
export function parseMarkdown(source: string): Block[] {
	let offset = 0;
	const blocks: Block[] = [];
	for (const token of lex(source)) {
		if (token.type !== 'space' && token.type !== 'def') blocks.push({ key: offset, token });
		offset += token.raw.length;
	}
	return blocks;
}

/** Parses a text that grows at its end. */
export class MarkdownStream {
	#source = '';
	/** Characters of the source that the settled blocks cover. */
	#settledTo = 0;
	#settled: Block[] = [];

	/**
	 * Brings the stream to `source` and returns all blocks; the settled ones are the same objects as before.
	 * While the text is `open`, its unfinished end is shown as what it is about to become.
	 */
	update(source: string, open = false): Block[] {
		if (!source.startsWith(this.#source)) {
			this.#settledTo = 0;
			this.#settled = [];
		}
		this.#source = source;

		const rest = source.slice(this.#settledTo);
		const tail = lex(open ? completeTail(rest) : rest);
		// The last block that is not blank space can still grow: a list may gain an item after an empty
		// line, a paragraph may become a heading, a table gains rows. Everything before it is final.
		let last = tail.length - 1;
		while (last >= 0 && tail[last]!.type === 'space') last--;

		let offset = this.#settledTo;
		const growing: Block[] = [];
		for (let index = 0; index < tail.length; index++) {
			const token = tail[index]!;
			if (token.type !== 'space' && token.type !== 'def') {
				(index < last ? this.#settled : growing).push({ key: offset, token });
			}
			offset += token.raw.length;
			if (index < last) this.#settledTo = offset;
		}
		return [...this.#settled, ...growing];
	}
}

const SAFE_LINK = /^(?:https?:|mailto:)/i;

/** The address when it may be followed from an answer, otherwise nothing: no `javascript:`, no `data:`, no relative paths. */
export function safeHref(href: string): string | undefined {
	const trimmed = href.trim();
	return SAFE_LINK.test(trimmed) ? trimmed : undefined;
}

/** The answer as plain text: no marks, no citation numbers, no stray blank lines. */
export function plainText(source: string): string {
	return lines(lex(source))
		.replace(/\n{3,}/g, '\n\n')
		.trim();
}

function lines(tokens: Token[]): string {
	return tokens
		.map((token) => {
			switch (token.type) {
				case 'space':
				case 'def':
				case 'hr':
					return '';
				case 'code':
					return `${(token as Tokens.Code).text}\n\n`;
				case 'list':
					return `${(token as Tokens.List).items
						.map((item, at) => {
							const start = (token as Tokens.List).start;
							const mark = (token as Tokens.List).ordered ? `${Number(start || 1) + at}. ` : '- ';
							return mark + lines(item.tokens).trim().replace(/\n+/g, '\n  ');
						})
						.join('\n')}\n\n`;
				case 'table':
					return `${[(token as Tokens.Table).header, ...(token as Tokens.Table).rows]
						.map((row) => row.map((cell) => inlineText(cell.tokens)).join('\t'))
						.join('\n')}\n\n`;
				case 'blockquote':
					return lines((token as Tokens.Blockquote).tokens);
				case 'math':
					return `${(token as unknown as MathToken).tex}\n\n`;
				default:
					return `${inlineText('tokens' in token && token.tokens ? token.tokens : [token])}\n\n`;
			}
		})
		.join('');
}

/** The words of inline tokens, citation marks left out. */
export function inlineText(tokens: Token[]): string {
	return tokens
		.map((token) => {
			if (token.type === 'cite') return '';
			if (token.type === 'br') return '\n';
			if (token.type === 'math') return (token as unknown as MathToken).tex;
			if ('tokens' in token && token.tokens && token.type !== 'codespan') return inlineText(token.tokens);
			return 'text' in token ? decodeEntities(String(token.text)) : token.raw;
		})
		.join('')
		.replace(/ +([.,;:!?])/g, '$1');
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' };

/** Named and numeric character references, as Markdown allows them in text. Unknown ones stay as written. */
export function decodeEntities(text: string): string {
	if (!text.includes('&')) return text;
	return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi, (whole, dec, hex, name) => {
		if (name) return ENTITIES[name.toLowerCase()] ?? whole;
		const code = dec ? Number(dec) : Number.parseInt(hex, 16);
		return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : '\ufffd';
	});
}
