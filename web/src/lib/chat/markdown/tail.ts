/**
 * Makes the unfinished end of a streaming text readable: what will be a mark in a moment must not be
 * seen as stray punctuation first. Only the last line or block is touched.
 */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** A last line that only announces something: a list mark, a heading, a rule, a fence, a quote, a table edge. */
const ANNOUNCES = /^\s*(?:[-=*+#]+|\d{1,3}[.)]?|>+|`{1,2}|~{1,2}|\||\$\$?|\\)\s*$/;

/** The text as it should be shown while more of it is on the way. */
export function completeTail(source: string): string {
	if (insideFence(source)) return source;

	let text = source;
	const lineStart = text.lastIndexOf('\n') + 1;
	if (ANNOUNCES.test(text.slice(lineStart))) text = text.slice(0, lineStart).replace(/\n$/, '');

	const blockStart = Math.max(text.lastIndexOf('\n\n') + 2, 0);
	const head = text.slice(0, blockStart === 1 ? 0 : blockStart);
	let block = text.slice(head.length);

	if (isTableWithoutBody(block)) return head;
	block = block
		// A citation mark or a link that has only begun.
		.replace(/\[[\d,\s]*$/, '')
		.replace(/!?\[([^\]\n]*)\]\([^)\n]*$/, '$1')
		.replace(/!?\[([^\]\n]{0,200})$/, '$1')
		.replace(/!?\[((?![\d,\s]+\])[^\]\n]+)\]$/, '$1');

	if (odd(block, /(?<!\\)`/g)) return `${head}${block}\``;
	block = block
		.replace(/(?<![*\\])\*$/, '')
		.replace(/(?<![\w_\\])_{1,2}$/, '')
		.replace(/~$/, '');
	if (odd(block, /(?<!\\)\*\*/g)) {
		block = /\*\*\s*$/.test(block) ? block.replace(/\*\*\s*$/, '') : `${block.trimEnd()}**`;
	} else if (odd(block.replace(/\*\*/g, '').replace(/^\s*\*\s/gm, ''), /(?<![\\\s])\*|\*(?=\S)/g)) {
		block = `${block.trimEnd()}*`;
	}
	return head + block;
}

function odd(text: string, pattern: RegExp): boolean {
	return (text.match(pattern)?.length ?? 0) % 2 === 1;
}

function insideFence(source: string): boolean {
	let fence: string | null = null;
	for (const line of source.split('\n')) {
		const mark = FENCE.exec(line)?.[1];
		if (!mark) continue;
		if (fence === null) fence = mark;
		else if (mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = null;
	}
	return fence !== null;
}

/** A header row whose rule has not come yet would show as a line of bars. */
function isTableWithoutBody(block: string): boolean {
	const lines = block.split('\n').filter((line) => line.trim() !== '');
	if (lines.length === 0 || lines.length > 2 || !/^\s*\|/.test(lines[0]!)) return false;
	return (
		lines.length === 1 ||
		!/^\s*\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*\|?\s*$/.test(lines[1]!) ||
		columns(lines[1]!) < columns(lines[0]!)
	);
}

function columns(line: string): number {
	return line
		.trim()
		.replace(/^\||\|$/g, '')
		.split('|').length;
}
