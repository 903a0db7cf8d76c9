/** Extra fields of a provider's requests, as text and back. */

/** The fields as people edit them; nothing for none. */
export function extraText(fields: Record<string, unknown> | undefined): string {
	return fields && Object.keys(fields).length > 0 ? JSON.stringify(fields, null, 2) : '';
}

/** The object that was typed; blank is an empty one, and anything else than an object is `null`. */
export function readExtra(text: string): Record<string, unknown> | null {
	if (!text.trim()) return {};
	try {
		const value: unknown = JSON.parse(text);
		return value && typeof value === 'object' && !Array.isArray(value) ? { ...value } : null;
	} catch {
		return null;
	}
}
