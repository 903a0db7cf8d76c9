/**
 * Finds a passage of extracted text among the text items of PDF pages. Extractors differ in spaces,
 * hyphens and ligatures, so only letters and digits are compared.
 */

/** Where a passage lies on one page: a run of its text items. */
export interface PageRun {
	/** Index into the pages that were given. */
	page: number;
	first: number;
	last: number;
}

/** Characters at either end that identify a passage whose middle differs. */
const ENDS = 48;

function letters(text: string): string {
	return text
		.normalize('NFKC')
		.toLowerCase()
		.replace(/[^\p{L}\p{N}]+/gu, '');
}

/** Runs of items that hold `passage`; empty when the passage is not on these pages. */
export function findPassage(pages: readonly (readonly string[])[], passage: string): PageRun[] {
	const wanted = letters(passage);
	if (wanted === '') return [];
	let text = '';
	/** For every item: where it starts in `text`. */
	const items: { page: number; item: number; start: number; end: number }[] = [];
	for (const [page, strings] of pages.entries()) {
		for (const [item, string] of strings.entries()) {
			const start = text.length;
			text += letters(string);
			if (text.length > start) items.push({ page, item, start, end: text.length });
		}
	}

	let from = text.indexOf(wanted);
	let to = from + wanted.length;
	if (from < 0) {
		const head = wanted.slice(0, ENDS);
		const tail = wanted.slice(-ENDS);
		const a = text.indexOf(head);
		const b = text.indexOf(tail, Math.max(0, a));
		if (a >= 0 && b >= 0 && b + tail.length - a <= wanted.length * 1.5) [from, to] = [a, b + tail.length];
		else if (a >= 0) [from, to] = [a, Math.min(text.length, a + wanted.length)];
		else if (b >= 0) [from, to] = [Math.max(0, b + tail.length - wanted.length), b + tail.length];
		else return [];
	}

	const runs: PageRun[] = [];
	for (const { page, item, start, end } of items) {
		if (end <= from || start >= to) continue;
		const run = runs.at(-1);
		if (run?.page === page) run.last = item;
		else runs.push({ page, first: item, last: item });
	}
	return runs;
}
