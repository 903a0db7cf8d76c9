/**
 * Narrows a cited passage to the words that an answer really quotes. Passages are whole chunks, often most
 * of a page; when the sentence around a citation mark repeats a part of it, only that part is marked.
 */
import type { Passage } from './types.ts';

/** Fewer letters than this say nothing about where a quote comes from. */
const MIN_LETTERS = 24;

/** Letters and digits of a text, and for each the index (UTF-16) of the character it came from. */
function letters(text: string): { letters: string; from: number[] } {
	let out = '';
	const from: number[] = [];
	for (let index = 0; index < text.length;) {
		const code = text.codePointAt(index)!;
		const character = String.fromCodePoint(code);
		const folded = character.normalize('NFKC').toLowerCase();
		if (/^[\p{L}\p{N}]+$/u.test(folded)) {
			out += folded;
			for (let unit = 0; unit < folded.length; unit++) from.push(index);
		}
		index += character.length;
	}
	return { letters: out, from };
}

/** The part of `passage` that `quote` repeats; the passage itself when it repeats none, or all of it. */
export function narrowPassage(passage: Passage, quote: string | null): Passage {
	if (!quote) return passage;
	const wanted = letters(quote).letters;
	if (wanted.length < MIN_LETTERS) return passage;
	const have = letters(passage.passage);
	const at = have.letters.indexOf(wanted);
	if (at < 0) return passage;
	const first = have.from[at]!;
	const last = have.from[at + wanted.length - 1]!;
	// Up to and including the full stop that ends the quoted words.
	const tail = /^\p{P}*/u.exec(passage.passage.slice(last + 1))?.[0].length ?? 0;
	const end = last + 1 + tail;
	const scalars = (text: string) => [...text].length;
	const start = passage.start + scalars(passage.passage.slice(0, first));
	const words = passage.passage.slice(first, end);
	return { ...passage, passage: words, start, end: start + scalars(words) };
}
