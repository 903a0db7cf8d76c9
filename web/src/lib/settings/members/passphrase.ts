/** A first password to hand over: random, meets every rule, without letters and digits that look alike. */
const LETTERS = 'abcdefghijkmnpqrstuvwxyz';
const DIGITS = '23456789';

/** Three groups of five, about 70 bits: `Kbmwt-q4xzn-hj7pd`. */
export function makePassword(): string {
	const pick = (signs: string) => signs[below(signs.length)] ?? '';
	const group = () => Array.from({ length: 5 }, () => pick(LETTERS)).join('');
	const withDigit = () => {
		const signs = [...group()];
		signs[1 + below(4)] = pick(DIGITS);
		return signs.join('');
	};
	const first = group();
	return `${first[0]?.toUpperCase()}${first.slice(1)}-${withDigit()}-${withDigit()}`;
}

/** An even random number below `limit` (at most 256). */
function below(limit: number): number {
	const bytes = new Uint8Array(1);
	const fair = 256 - (256 % limit);
	do crypto.getRandomValues(bytes);
	while ((bytes[0] ?? 0) >= fair);
	return (bytes[0] ?? 0) % limit;
}
