/** Budget rules in words, and what is wrong with one. */
import { formatList, formatNumber } from '#lib/i18n/format.ts';
import { m } from '#lib/paraglide/messages.js';
import { usd } from './amounts.ts';
import type { BudgetRule, Period } from './policies.ts';

export const PERIODS = ['daily', 'weekly', 'monthly'] as const satisfies readonly Period[];

export function periodLabel(period: Period): string {
	switch (period) {
		case 'daily':
			return m.governance_daily();
		case 'weekly':
			return m.governance_weekly();
		case 'monthly':
			return m.governance_monthly();
	}
}

/** Every limit of a rule, joined as the language does. */
export function limitsOf(rule: BudgetRule): string {
	const limits = [];
	if (rule.maxCostCents !== undefined) limits.push(usd(rule.maxCostCents));
	if (rule.maxTokens !== undefined) limits.push(m.governance_tokens({ count: formatNumber(rule.maxTokens) }));
	if (rule.maxRequests !== undefined) limits.push(m.governance_requests({ count: formatNumber(rule.maxRequests) }));
	return formatList(limits);
}

/** What is wrong with a rule, by field; nothing when it can be saved. */
export function budgetErrors(rule: BudgetRule): Record<string, string> {
	const errors: Record<string, string> = {};
	const { maxCostCents: cost, maxTokens: tokens, maxRequests: requests, warningThresholdPercent: percent } = rule;
	if (cost !== undefined && !(cost > 0)) errors.cost = m.governance_limit_cost_wrong();
	if (tokens !== undefined && !(tokens > 0)) errors.tokens = m.governance_limit_wrong();
	if (requests !== undefined && !(requests > 0)) errors.requests = m.governance_limit_wrong();
	if (cost === undefined && tokens === undefined && requests === undefined) errors.cost = m.governance_limit_missing();
	if (percent !== undefined && !(percent >= 0 && percent <= 100)) errors.percent = m.governance_warning_wrong();
	return errors;
}
