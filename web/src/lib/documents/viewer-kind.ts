/** How a document is shown inline. */
import { extensionOf } from './kinds.ts';
import type { Document } from './types.ts';

/** `office` files are shown as the text extracted from them; `none` can only be downloaded. */
export type ViewerKind = 'pdf' | 'image' | 'text' | 'prose' | 'office' | 'none';

const IMAGES = new Set(['png', 'jpg', 'jpeg', 'gif', 'webp']);
const OFFICE = new Set(['docx', 'xlsx', 'pptx', 'odt', 'html', 'htm']);
const PROSE = new Set(['txt', 'md', 'markdown']);

export function viewerKind(document: Pick<Document, 'fileName' | 'extension' | 'indexing'>): ViewerKind {
	const extension = (document.extension || extensionOf(document.fileName)).replace(/^\./, '').toLowerCase();
	if (extension === 'pdf') return 'pdf';
	if (IMAGES.has(extension)) return 'image';
	if (document.indexing.errorCode === 'unsupported_type' || document.indexing.errorCode === 'not_text') return 'none';
	if (OFFICE.has(extension)) return 'office';
	return PROSE.has(extension) ? 'prose' : 'text';
}
