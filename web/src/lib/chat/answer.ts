/**
 * What a reader sees of an assistant message, computed from its parts: the thought, the steps, the
 * text, what the citation marks point at and the sources below. The same function serves the stored
 * message and the running turn, so that settling changes nothing on screen.
 */
import type { Readable } from '#lib/documents/types.ts';
import type { CitationPart, Part, SearchRow } from './types';

/** One tool call, in the words the timeline needs. */
export interface Step {
	id: string;
	kind: 'search' | 'list' | 'read' | 'call';
	/** The query, the name or host of what was read, or the tool's name. */
	subject: string;
	state: 'running' | 'done' | 'failed';
	/** Why it failed, in the server's words. */
	reason?: string;
	/** Rows found by a search. */
	found?: number;
	/** The search said that it went by words alone. */
	keywordsOnly?: boolean;
}

/** What a citation mark opens. */
export interface Citation {
	number: number;
	title: string;
	/** The document of the library it stands in, or the file of this chat; a passage without either opens nothing. */
	what: Readable | null;
	chunkId: string | null;
	page: number | null;
	passage: string;
}

/** A card under the answer. `number` is absent for a document that was read but not cited. */
export interface Source {
	key: string;
	number: number | null;
	title: string;
	/** What it opens; nothing for a web page. */
	what: Readable | null;
	chunkId: string | null;
	page: number | null;
	/** Address of a web page. */
	url: string | null;
}

export interface Answer {
	reasoning: string;
	text: string;
	steps: Step[];
	citations: Map<number, Citation>;
	sources: Source[];
}

export function readAnswer(parts: readonly Part[]): Answer {
	const texts: string[] = [];
	const thoughts: string[] = [];
	const steps = new Map<string, Step>();
	const titles = new Map<string, string>();
	const citations = new Map<number, Citation>();
	const cited: CitationPart[] = [];
	const fetched: Source[] = [];

	for (const part of parts) {
		switch (part.type) {
			case 'text':
				if (part.text.trim() !== '') texts.push(part.text);
				break;
			case 'reasoning':
				if (part.text.trim() !== '') thoughts.push(part.text.trim());
				break;
			case 'tool-call':
				steps.set(part.id, startStep(part.id, part.name, record(part.input), titles));
				break;
			case 'tool-result': {
				const output = record(part.output);
				const step = steps.get(part.id) ?? startStep(part.id, part.name, {}, titles);
				steps.set(part.id, finishStep(step, part.name, output, part.isError === true, part.output));
				if (part.isError) break;
				for (const row of rows(output)) {
					titles.set(row.ref, row.title);
					if (row.cite > 0) citations.set(row.cite, fromRow(row));
				}
				const source = fetchedSource(part.name, output);
				if (source) fetched.push(source);
				break;
			}
			case 'citation':
				cited.push(part);
				citations.set(part.number, {
					number: part.number,
					title: part.title,
					what: readable(part.documentId, part.fileId),
					chunkId: part.chunkId,
					page: part.page ?? null,
					passage: part.passage
				});
				break;
			default:
				break;
		}
	}

	// Once the turn has settled, its citations are the ones that count; rows nobody cited are no passages of the answer.
	if (cited.length > 0) {
		const numbers = new Set(cited.map((part) => part.number));
		for (const number of citations.keys()) if (!numbers.has(number)) citations.delete(number);
	}

	const sources: Source[] = cited
		.toSorted((a, b) => a.number - b.number)
		.map((part) => ({
			key: `cite-${part.number}`,
			number: part.number,
			title: part.title,
			what: readable(part.documentId, part.fileId),
			chunkId: part.chunkId,
			page: part.page ?? null,
			url: null
		}));
	const known = new Set(sources.map((source) => source.what?.id ?? null));
	for (const source of fetched) {
		const place = source.what?.id ?? source.url;
		if (known.has(place)) continue;
		known.add(place);
		sources.push(source);
	}

	return { reasoning: thoughts.join('\n\n'), text: texts.join('\n\n'), steps: [...steps.values()], citations, sources };
}

/** What a passage of a document, or of a file that no document holds, opens. */
function readable(documentId: string | null | undefined, fileId: string | null | undefined): Readable | null {
	if (documentId) return { kind: 'document', id: documentId };
	return fileId ? { kind: 'file', id: fileId } : null;
}

/** The passages of one document that an answer cites, in the order of their numbers. */
export function passagesOf(answer: Answer, what: Readable): Citation[] {
	return [...answer.citations.values()]
		.filter((citation) => citation.what?.id === what.id && citation.chunkId !== null)
		.toSorted((a, b) => a.number - b.number);
}

function startStep(id: string, name: string, input: Record<string, unknown>, titles: Map<string, string>): Step {
	if (name === 'rag_search') {
		const query = text(input.query);
		return input.action === 'list' || query === ''
			? { id, kind: 'list', subject: text(input.kind), state: 'running' }
			: { id, kind: 'search', subject: query, state: 'running' };
	}
	if (name === 'web_fetch') return { id, kind: 'read', subject: hostOf(text(input.url)), state: 'running' };
	if (name === 'rag_fetch') return { id, kind: 'read', subject: titles.get(text(input.ref)) ?? '', state: 'running' };
	return { id, kind: 'call', subject: name, state: 'running' };
}

function finishStep(step: Step, name: string, output: Record<string, unknown>, failed: boolean, raw: unknown): Step {
	const next: Step = { ...step, state: failed ? 'failed' : 'done' };
	if (failed) {
		const reason = text(output.error) || text(output.message) || (typeof raw === 'string' ? raw : '');
		if (reason) next.reason = reason;
		return next;
	}
	if (name === 'rag_fetch' && text(output.title)) next.subject = text(output.title);
	if (name === 'rag_search') {
		next.found = rows(output).length;
		if (output.dense === false) next.keywordsOnly = true;
	}
	return next;
}

function fetchedSource(name: string, output: Record<string, unknown>): Source | null {
	const documentId = text(output.documentId);
	const title = text(output.title);
	const url = text(output.url);
	if (name === 'rag_fetch' && documentId !== '') {
		return {
			key: `read-${documentId}`,
			number: null,
			title,
			what: readable(documentId, null),
			chunkId: null,
			page: null,
			url: null
		};
	}
	if (name === 'web_fetch' && /^https?:/i.test(url)) {
		return {
			key: `web-${url}`,
			number: null,
			title: title || hostOf(url),
			what: null,
			chunkId: null,
			page: null,
			url
		};
	}
	return null;
}

/** The host of an address, for a line that names where something was read; the address itself when it has none. */
export function hostOf(url: string): string {
	return URL.parse(url)?.hostname ?? url;
}

function fromRow(row: SearchRow): Citation {
	return {
		number: row.cite,
		title: row.title,
		what: readable(row.documentId, row.ref),
		chunkId: row.chunkId ?? null,
		page: row.page ?? null,
		passage: row.snippet ?? ''
	};
}

function rows(output: Record<string, unknown>): SearchRow[] {
	if (!Array.isArray(output.rows)) return [];
	return output.rows.filter(
		(row): row is SearchRow => typeof row === 'object' && row !== null && typeof (row as SearchRow).title === 'string'
	);
}

/** Tool input and output are objects; some models and older rows carry them as JSON text. */
function record(value: unknown): Record<string, unknown> {
	if (typeof value === 'string') {
		try {
			return record(JSON.parse(value) as unknown);
		} catch {
			return {};
		}
	}
	return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function text(value: unknown): string {
	return typeof value === 'string' ? value : '';
}
