/** How a document is shown inline. */
import type { About } from './types.ts';

/** `office` files are shown as the text extracted from them; `none` can only be downloaded. */
export type ViewerKind = 'pdf' | 'image' | 'text' | 'prose' | 'office' | 'none';

const IMAGES = new Set(['png', 'jpg', 'jpeg', 'gif', 'webp']);
const OFFICE = new Set(['docx', 'xlsx', 'pptx', 'odt', 'html', 'htm']);
const PROSE = new Set(['txt', 'md', 'markdown']);

export function viewerKind(about: Pick<About, 'extension' | 'errorCode'>): ViewerKind {
	const extension = about.extension.replace(/^\./, '').toLowerCase();
	if (extension === 'pdf') return 'pdf';
	if (IMAGES.has(extension)) return 'image';
	if (about.errorCode === 'unsupported_type' || about.errorCode === 'not_text') return 'none';
	if (OFFICE.has(extension)) return 'office';
	return PROSE.has(extension) ? 'prose' : 'text';
}
