import { m } from '#lib/paraglide/messages.js';

/** What is wrong with an organization's name, in words; null when nothing is. */
export function organizationNameError(name: string): string | null {
	const text = name.trim();
	if (text === '') return m.organization_name_missing();
	if (!/^[\p{L}\p{N}\u0300-\u036f _-]+$/u.test(text) || !/[\p{L}\p{N}]/u.test(text)) return m.organization_name_signs();
	return null;
}
