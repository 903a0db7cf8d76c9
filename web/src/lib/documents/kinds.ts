/** The short name of a file's kind, as people say it. */
import { m } from '#lib/paraglide/messages.js';

const WORDS: Record<string, () => string> = {
	pdf: () => 'PDF',
	docx: () => 'Word',
	doc: () => 'Word',
	xlsx: () => 'Excel',
	xls: () => 'Excel',
	pptx: () => 'PowerPoint',
	ppt: () => 'PowerPoint',
	odt: () => 'OpenDocument',
	md: () => 'Markdown',
	csv: () => 'CSV',
	json: () => 'JSON',
	html: () => 'HTML',
	htm: () => 'HTML',
	txt: () => m.documents_kind_text()
};

/** What follows the last dot of a name, in lower case; empty when there is none. */
export function extensionOf(name: string): string {
	const at = name.lastIndexOf('.');
	return at > 0 && at < name.length - 1 && name.length - at <= 11 ? name.slice(at + 1).toLowerCase() : '';
}

export function kindOf(name: string): string {
	const extension = extensionOf(name);
	return WORDS[extension]?.() ?? (extension ? extension.toUpperCase() : m.documents_kind_document());
}
