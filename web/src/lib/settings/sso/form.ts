/** The form of a connection: what it begins with, what is missing, what the server found wrong. */
import { toProblem } from '#lib/api/problem.ts';
import type { SsoConfig, SsoForm, SsoSettings } from '#lib/api/types.ts';
import { problemText } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';

export type Draft = SsoForm & { clientSecret: string };

const FRESH: Draft = {
	displayName: '',
	enabled: true,
	defaultRole: 'member',
	domains: [],
	clientSecret: '',
	config: {
		protocol: 'oidc',
		issuer: '',
		clientId: '',
		scopes: ['openid', 'email', 'profile'],
		claims: { email: 'email', name: 'name', groups: 'groups', roles: 'roles' },
		autoAssign: false,
		rules: [],
		teamSync: false,
		excludedGroups: []
	}
};

type Connection = SsoSettings['connection'];

/** What is stored, as a draft; what a new connection begins with when nothing is. */
export function draftOf(stored: Connection, name: string): Draft {
	if (!stored?.config) return { ...structuredClone(FRESH), displayName: stored?.displayName ?? name };
	const { displayName, enabled, defaultRole, domains, config } = stored;
	return { displayName, enabled, defaultRole, domains, config: structuredClone(config), clientSecret: '' };
}

/** Whether the stored secret belongs to the provider and the client of the draft. */
export function keepsSecret(stored: Connection, { config }: Draft): boolean {
	const before = stored?.hasSecret ? stored.config : null;
	return (
		!!before &&
		before.protocol === config.protocol &&
		before.issuer === config.issuer.trim() &&
		before.clientId === config.clientId.trim()
	);
}

/** What is sent: a secret only when one was typed or none is kept. */
export function bodyOf(draft: Draft, keeps: boolean): SsoForm {
	const { clientSecret, ...rest } = draft;
	return clientSecret || !keeps ? { ...rest, clientSecret } : rest;
}

export function missing(draft: Draft): Record<string, string> {
	const errors: Record<string, string> = {};
	const needed = m.sso_missing();
	if (!draft.displayName.trim()) errors.displayName = needed;
	if (!draft.config.issuer.trim()) errors.issuer = needed;
	if (!draft.config.clientId.trim()) errors.clientId = needed;
	for (const name of ['email', 'name', 'groups', 'roles'] as const)
		if (!draft.config.claims[name].trim()) errors[`claims.${name}`] = needed;
	if (draft.config.rules.some((rule) => !rule.claim.trim() || !rule.value.trim())) errors.rules = needed;
	return errors;
}

/** What the server found wrong: a sentence for each field, and one for the whole form. */
export function failureOf(error: unknown): { fields: Record<string, string>; text: string | null } {
	const problem = toProblem(error);
	if (problem.code === 'PRIVATE_HOST_BLOCKED') return { fields: { issuer: problemText(problem) }, text: null };
	if (problem.code === 'sso_config_unreadable') return { fields: {}, text: m.sso_unreadable() };
	const fields: Record<string, string> = {};
	const { issues } = problem.data;
	for (const issue of Array.isArray(issues) ? issues : []) {
		const path = String(issue?.path);
		if (path === 'issuer') fields.issuer = m.sso_issuer_invalid();
		else if (path === 'clientSecret') fields.clientSecret = m.sso_secret_again();
		else fields[path] = m.sso_invalid();
	}
	return Object.keys(fields).length > 0 ? { fields, text: null } : { fields, text: problemText(problem) };
}

export type Rule = SsoConfig['rules'][number];

/** The list with the rule at `index` one place up or down. */
export function moved(rules: readonly Rule[], index: number, by: -1 | 1): Rule[] {
	const next = [...rules];
	const [rule] = next.splice(index, 1);
	if (rule) next.splice(index + by, 0, rule);
	return next;
}
