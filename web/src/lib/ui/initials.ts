/** Up to two letters that stand for a name: first and last word, `ML` for "Maya Lindqvist". */
export function initials(name: string): string {
	const words = name.trim().split(/\s+/).filter(Boolean);
	const first = words[0];
	if (!first) return '?';
	const last = words.length > 1 ? words[words.length - 1] : undefined;
	const letter = (word: string) => [...word][0] ?? '';
	return (letter(first) + (last ? letter(last) : '')).toLocaleUpperCase();
}
