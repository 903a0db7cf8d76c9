/** The pattern of a page, with a placeholder for every id: `/dashboard/:org/chat/:threadId`. */
export function template(route: string | null): string {
	const words = (route ?? '/*')
		.split('/')
		.filter((word) => !/^\(.*\)$/.test(word))
		.map((word) => (word.includes('[...') ? '*' : word.replace(/^\[+([^\]]+)\]+$/, ':$1')));
	return words.join('/') || '/';
}
