/** Cuts a text around the words of a search, so that matches can be set in weight. */
export interface Piece {
	text: string;
	hit: boolean;
}

/** Words are matched at any place and in any case; accents count, as the reader sees them. */
export function marked(text: string, query: string): Piece[] {
	const words = query
		.split(/\s+/)
		.filter(Boolean)
		.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
	if (words.length === 0) return [{ text, hit: false }];
	const pattern = new RegExp(`(${words.sort((a, b) => b.length - a.length).join('|')})`, 'giu');
	return text
		.split(pattern)
		.map((piece, index) => ({ text: piece, hit: index % 2 === 1 }))
		.filter((piece) => piece.text !== '');
}

/** The same for a text in which the server put the match between « and ». */
export function quoted(text: string): Piece[] {
	return text
		.split(/«([^»]*)»/)
		.map((piece, index) => ({ text: piece, hit: index % 2 === 1 }))
		.filter((piece) => piece.text !== '');
}
