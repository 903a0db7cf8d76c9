/** A published snapshot in the shapes that the transcript shows. */
import type { components } from '#lib/api/schema.ts';
import type { Row } from '../rows.ts';
import type { Part } from '../types.ts';

type SharedMessage = components['schemas']['SharedMessage'];
type SharedPart = components['schemas']['SharedPart'];

/** Messages of a snapshot have no ids; their place is their name. */
export function rowsOf(messages: readonly SharedMessage[]): Row[] {
	return messages.map(({ role, status, parts, createdAt }, index) => {
		const id = `shared-${index}`;
		const shown = parts.map(partOf);
		return {
			key: id,
			message: { id, role, status, parts: shown, createdAt },
			parts: shown,
			local: false,
			running: false,
			last: false
		};
	});
}

/** A file has only its name here, and a source without an address cannot be opened. */
function partOf(part: SharedPart, index: number): Part {
	switch (part.type) {
		case 'text':
			return part;
		case 'attachment':
			return { type: 'attachment', name: part.name, mediaType: '', fileId: `file-${index}`, sizeBytes: 0 };
		case 'citation':
			return {
				type: 'citation',
				number: part.number,
				title: part.title,
				...(part.page === undefined ? {} : { page: part.page }),
				...(part.source ? { documentId: part.source.documentId } : {}),
				chunkId: part.source?.chunkId ?? '',
				passage: part.source?.passage ?? ''
			};
		default:
			return { type: 'opaque' };
	}
}
