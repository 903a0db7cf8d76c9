/** What rules about models say, judged as the server judges them. */
import type { Role } from '#lib/api/types.ts';
import type { ModelAccess, Target } from './policies.ts';

/** How rules name a model. */
export const reference = (model: { providerSlug: string; id: string }) => `${model.providerSlug}/${model.id}`;

/** Whether an entry of a rule's list is about a model; without a provider it counts at each. */
export function names(entry: string, provider: string, model: string): boolean {
	return entry.includes('/') ? entry === `${provider}/${model}` : entry === model;
}

/** Whether somebody with a role may use a model, as far as no rule is about them in person. */
export function permits(access: ModelAccess, role: Role, provider: string, model: string): boolean {
	if (!access.enabled) return true;
	const of = (scope: Target['scope']) =>
		access.rules.filter((rule) => rule.scope === scope && (scope === 'default' || rule.scopeId === role));
	const rules = of('role').length > 0 ? of('role') : of('default');
	if (rules.length === 0) return true;
	const listed = (lists: string[][]) => lists.some((list) => list.some((entry) => names(entry, provider, model)));
	const allowed = access.mode === 'blocklist' || listed(rules.map((rule) => rule.allowedModels));
	return allowed && !listed(rules.map((rule) => rule.blockedModels));
}
