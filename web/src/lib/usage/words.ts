/** Amounts, limits and rows of the ledger in words. */
import { formatDateTime, formatNumber } from '#lib/i18n/format.ts';
import { m } from '#lib/paraglide/messages.js';
import type { Limit, Metric, UsageGroup } from './types.ts';

/** What of a limit a sentence needs; refusals carry the same fields. */
export type LimitFacts = Pick<Limit, 'code' | 'scope' | 'shared' | 'period' | 'used' | 'limit' | 'resetsAt'>;

/** Dollars; what is less than a cent keeps the digits that tell it from nothing. */
export function formatCost(cents: number): string {
	const small = cents > 0 && cents < 100;
	return formatNumber(cents / 100, {
		style: 'currency',
		currency: 'USD',
		maximumFractionDigits: small ? 4 : 2
	});
}

/** A number that is short enough for an axis or a card. */
export function formatShort(value: number): string {
	return formatNumber(value, { notation: value >= 10_000 ? 'compact' : 'standard', maximumFractionDigits: 1 });
}

export function formatMetric(metric: Metric, value: number): string {
	return metric === 'costCents' ? formatCost(value) : formatShort(value);
}

export const tokensText = (count: number): string => m.usage_tokens_count({ count, shown: formatNumber(count) });
export const requestsText = (count: number): string => m.usage_requests_count({ count, shown: formatNumber(count) });

const AMOUNTS: Record<Limit['code'], (value: number) => string> = {
	TOKEN_LIMIT: tokensText,
	COST_LIMIT: formatCost,
	REQUEST_LIMIT: requestsText
};

/** An amount in the unit of its limit. */
export const amountOf = (code: Limit['code'], value: number): string => AMOUNTS[code](value);

export function kindName(code: Limit['code']): string {
	return { TOKEN_LIMIT: m.usage_tokens, COST_LIMIT: m.usage_cost, REQUEST_LIMIT: m.usage_requests }[code]();
}

export function periodName(period: Limit['period']): string {
	return { daily: m.usage_per_day, weekly: m.usage_per_week, monthly: m.usage_per_month }[period]();
}

/** Whose limit it is and how much it is: `Your limit of $5.00 per month`. */
function whose(facts: {
	code: Limit['code'];
	scope: string;
	shared: boolean;
	period: Limit['period'];
	limit: number;
}): string {
	const amount = amountOf(facts.code, facts.limit);
	const period = periodName(facts.period);
	if (facts.scope === 'org') return m.usage_limit_org({ amount, period });
	if (facts.scope === 'apiKey') return m.usage_limit_key({ amount, period });
	if (facts.shared) return m.usage_limit_team({ amount, period });
	return m.usage_limit_yours({ amount, period });
}

/** That a limit is reached, and when it begins anew. */
export const reachedText = (facts: LimitFacts): string =>
	m.usage_limit_reached_text({ limit: whose(facts), reset: formatDateTime(facts.resetsAt) });

/** That little is left of a limit. */
export const warningText = (facts: LimitFacts): string =>
	m.usage_limit_warning_text({
		limit: whose(facts),
		left: amountOf(facts.code, Math.max(0, facts.limit - facts.used)),
		reset: formatDateTime(facts.resetsAt)
	});

/** The sentence of a refusal by its data; nothing when the data are not those of a limit. */
export function refusalSentence(data: Record<string, unknown>): string | null {
	const { code, scope, shared, period, used, limit, resetsAt } = data;
	const known =
		typeof code === 'string' && code in AMOUNTS && (period === 'daily' || period === 'weekly' || period === 'monthly');
	if (!known || typeof limit !== 'number' || typeof used !== 'number' || typeof resetsAt !== 'number') return null;
	const of = { scope: String(scope), shared: shared === true, period: period as Limit['period'] };
	const facts = { code: code as Limit['code'], ...of, limit };
	return m.usage_refused_text({ limit: whose(facts), reset: formatDateTime(resetsAt) });
}

/** Kinds of work that have no assistant's name. */
const SOURCES: Record<string, () => string> = {
	chat: m.usage_source_chat,
	'thread-title': m.usage_source_title,
	__transcription__: m.usage_source_transcription,
	__knowledge__: m.usage_source_knowledge,
	__direct_api__: m.usage_source_direct,
	__provider_test__: m.usage_source_test
};

/** The name of a row, never its id. */
export function groupName(by: 'agent' | 'model' | 'person' | 'key', { key, name }: UsageGroup): string {
	if (by === 'agent') return (key && SOURCES[key]?.()) || key || m.usage_source_unknown();
	if (by === 'model') return key ?? '';
	if (name) return name;
	if (by === 'person') return key ? m.usage_person_gone() : m.usage_person_none();
	return key ? m.usage_key_gone() : m.usage_key_none();
}
