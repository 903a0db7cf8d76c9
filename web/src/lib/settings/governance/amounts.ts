/** Amounts as people type and read them. */
import { formatNumber } from '#lib/i18n/format.ts';

/** Cents as dollars with the language's separators. */
export const usd = (cents: number) =>
	formatNumber(cents / 100, { style: 'currency', currency: 'USD', maximumFractionDigits: 6 });

/** Cents as a person would type them in dollars. */
export const usdText = (cents: number) => String(Number((cents / 100).toFixed(6)));

/** Typed dollars in cents; nothing for an empty field, NaN for what is no amount. A comma may stand for the point. */
export function centsOf(text: string): number | undefined {
	const plain = text.trim().replace(',', '.');
	if (plain === '') return undefined;
	return /^\d{1,9}(\.\d{1,6})?$/.test(plain) ? Number((Number(plain) * 100).toFixed(4)) : NaN;
}

/** A typed whole number; nothing for an empty field, NaN for what is none. Groups of three may be set apart. */
export function countOf(text: string): number | undefined {
	const plain = text.trim();
	if (plain === '') return undefined;
	return /^(\d{1,15}|\d{1,3}([\s.,'’]\d{3}){1,4})$/.test(plain) ? Number(plain.replace(/\D/g, '')) : NaN;
}
