/** The words of the audit log. */
import { m } from '#lib/paraglide/messages.js';
import type { AuditBreak, AuditEntry } from './queries.ts';

/** The areas of entries, in the order of the filter. */
export const CATEGORIES: readonly { value: string; label: () => string }[] = [
	{ value: 'auth', label: m.logs_category_auth },
	{ value: 'security', label: m.logs_category_security },
	{ value: 'member', label: m.logs_category_member },
	{ value: 'admin', label: m.logs_category_admin },
	{ value: 'data', label: m.logs_category_data },
	{ value: 'provider', label: m.logs_category_provider },
	{ value: 'ai', label: m.logs_category_ai },
	{ value: 'agent', label: m.logs_category_agent },
	{ value: 'skill', label: m.logs_category_skill },
	{ value: 'connector', label: m.logs_category_connector },
	{ value: 'automation', label: m.logs_category_automation }
];

/** What an area is called; an area of a later release keeps its technical name. */
export const categoryName = (category: string): string =>
	CATEGORIES.find(({ value }) => value === category)?.label() ?? category;

/** How an entry ended. */
export function statusName(status: string): string {
	if (status === 'failure') return m.logs_status_failure();
	if (status === 'denied') return m.logs_status_denied();
	return m.logs_status_success();
}

/** Who acted, in the best words there are. */
export function actorName(entry: AuditEntry): string {
	if (entry.actorEmail) return entry.actorEmail;
	if (entry.actorEmailHash) return m.logs_actor_hashed({ hash: entry.actorEmailHash.slice(0, 12) });
	if (entry.actorId) return entry.actorId;
	return entry.apiKeyId ? m.logs_actor_key() : m.logs_actor_system();
}

/** What is wrong at the place where the chain breaks. */
export function breakText({ kind, sequence }: Pick<AuditBreak, 'kind' | 'sequence'>): string {
	const place = String(sequence ?? '?');
	switch (kind) {
		case 'hash':
			return m.logs_break_hash({ place });
		case 'missing':
			return m.logs_break_missing({ place });
		case 'truncated':
			return m.logs_break_truncated({ place });
		case 'head':
			return m.logs_break_head({ place });
		default:
			return m.logs_break_other({ place });
	}
}
