/** Sizes: bytes in the policy, megabytes and gigabytes on the page; an empty field is no limit. */

export const MB = 1024 * 1024;
export const GB = 1024 * MB;

/** Never in powers of ten, and exact to the byte. */
const inUnit = (bytes: number, unit: number): string =>
	Number.isNaN(bytes) ? '' : (bytes / unit).toFixed(12).replace(/\.?0+$/, '');

export const sizeText = (bytes: number, unit: number): string => (bytes === 0 ? '' : inUnit(bytes, unit));

/** NaN when it is no size. */
export function sizeRead(text: string, unit: number): number {
	const plain = text.trim().replace(',', '.');
	if (plain === '') return 0;
	return /^\d+(\.\d+)?$/.test(plain) ? Math.round(Number(plain) * unit) : Number.NaN;
}

interface TypeSize {
	mimeTypePrefix: string;
	maxBytes: number;
}

/** `image/ 5, video/ 50`, in megabytes. */
export const typeSizesText = (limits: readonly TypeSize[]): string =>
	limits.map(({ mimeTypePrefix, maxBytes }) => `${mimeTypePrefix} ${inUnit(maxBytes, MB)}`).join(', ');

/** A size that can't be read is NaN, so that it is told rather than dropped. */
export const typeSizesRead = (text: string): TypeSize[] =>
	text
		.split(',')
		.map((part) => part.trim())
		.filter(Boolean)
		.map((part) => {
			const [prefix = '', size = ''] = part.split(/\s+/);
			return { mimeTypePrefix: prefix.toLowerCase(), maxBytes: size === '' ? Number.NaN : sizeRead(size, MB) };
		});
