/** What a document's indexing state means to people: a word, a reason, and whether trying again can help. */
import { m } from '#lib/paraglide/messages.js';
import type { Indexing } from './types.ts';

export type StatusTone = 'quiet' | 'working' | 'waiting' | 'failed' | 'off';

export interface StatusView {
	tone: StatusTone;
	label: string;
	/** Share done, while it is known. */
	share: number | null;
	/** Why, when something is not as it should be. */
	reason: string | null;
	/** A person can start it again. */
	retry: boolean;
	/** Put right in the embedding settings. */
	settings: boolean;
}

/** The statuses a list can be narrowed to, with their words. */
export const STATUS_FILTERS: readonly { value: string; label: () => string }[] = [
	{ value: 'completed', label: m.documents_status_indexed },
	{ value: 'running', label: m.documents_status_indexing },
	{ value: 'queued', label: m.documents_status_queued },
	{ value: 'failed', label: m.documents_status_failed },
	{ value: 'unsupported', label: m.documents_status_unsupported },
	{ value: 'pending', label: m.documents_status_not_indexed }
];

/** `hybrid` says that an embedding model is set, so that a document without vectors is worth a word. */
export function statusView(indexing: Indexing, hybrid: boolean): StatusView {
	const view = (tone: StatusTone, label: string, more: Partial<StatusView> = {}): StatusView => ({
		tone,
		label,
		share: null,
		reason: null,
		retry: false,
		settings: false,
		...more
	});
	switch (indexing.status) {
		case 'completed':
			return hybrid && !indexing.embedded
				? view('quiet', m.documents_status_keywords(), { reason: m.documents_reason_embedding_waiting() })
				: view('quiet', m.documents_status_indexed());
		case 'running': {
			const { done = 0, total = 0 } = indexing.progress ?? {};
			return view('working', m.documents_status_indexing(), { share: total > 0 ? done / total : null });
		}
		case 'queued':
			return indexing.errorCode === 'usage_limit'
				? view('waiting', m.documents_status_limited(), { reason: m.documents_reason_limited() })
				: view('waiting', m.documents_status_queued(), { reason: waitingReason(indexing.errorCode ?? '') });
		case 'failed': {
			const { reason, settings } = failureReason(indexing.errorCode ?? '');
			return view('failed', m.documents_status_failed(), { reason, settings, retry: true });
		}
		case 'unsupported':
			return view('off', m.documents_status_unsupported(), { reason: failureReason(indexing.errorCode ?? '').reason });
		case 'skipped':
			return view('off', m.documents_status_not_indexed(), { reason: m.documents_reason_skipped(), retry: true });
		default:
			return view('off', m.documents_status_not_indexed(), { retry: true });
	}
}

/** What a queued document waits for besides its turn. */
function waitingReason(code: string): string | null {
	switch (code) {
		case 'knowledge_misconfigured':
			return m.documents_reason_waits_settings();
		case 'knowledge_unavailable':
		case 'database_unavailable':
			return m.documents_reason_waits_database();
		case 'object_store_unavailable':
		case 'object_store_misconfigured':
			return m.documents_reason_waits_store();
		default:
			return null;
	}
}

/** The sentence for a code; the server's own words are shown only as details. */
function failureReason(code: string): { reason: string; settings: boolean } {
	const because = (reason: string, settings = false) => ({ reason, settings });
	switch (code) {
		case 'unsupported_type':
			return because(m.documents_reason_unsupported_type());
		case 'image_no_vision':
			return because(m.documents_reason_image());
		case 'empty':
			return because(m.documents_reason_empty());
		case 'not_text':
			return because(m.documents_reason_not_text());
		case 'malformed':
			return because(m.documents_reason_malformed());
		case 'encrypted':
			return because(m.documents_reason_encrypted());
		case 'too_large':
		case 'limit_exceeded':
			return because(m.documents_reason_too_large());
		case 'embedding_upstream':
			return because(m.documents_reason_embedding_upstream());
		case 'embedding_provider_refused':
			return because(m.documents_reason_embedding_refused(), true);
		case 'usage_limit':
			return because(m.documents_reason_usage_limit());
		case 'embedding_not_configured':
			return because(m.documents_reason_embedding_missing(), true);
		case 'index_rebuilding':
			return because(m.documents_reason_rebuilding());
		case 'index_repair_failed':
			return because(m.documents_reason_repair());
		case 'secret_detected':
			return because(m.documents_reason_secret());
		case 'pii_blocked':
			return because(m.documents_reason_pii());
		default:
			return because(m.documents_reason_indexer());
	}
}
