/** The form of a connection: what it begins with, what is missing, what the server found wrong. */
import { toProblem } from '#lib/api/problem.ts';
import type { SsoConfig, SsoForm, SsoSettings } from '#lib/api/types.ts';
import { problemText } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';

export type Draft = SsoForm & { clientSecret: string; spPrivateKey: string };
export type Saml = NonNullable<SsoConfig['saml']>;

/** What SAML begins with. */
export const FRESH_SAML: Saml = {
	signOnUrl: '',
	certificates: [],
	requireSignedAssertions: true,
	requireEncryptedAssertions: false,
	spCertificate: null
};

const FRESH: Draft = {
	displayName: '',
	enabled: true,
	defaultRole: 'member',
	domains: [],
	clientSecret: '',
	spPrivateKey: '',
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
	return {
		displayName,
		enabled,
		defaultRole,
		domains,
		config: structuredClone(config),
		clientSecret: '',
		spPrivateKey: ''
	};
}

/** The draft's provider as `protocol` has it: what only the other ones have begins anew. */
export function ofProtocol(config: SsoConfig, protocol: SsoConfig['protocol']): Partial<SsoConfig> {
	if (protocol === 'saml') return { protocol, clientId: '', scopes: [], saml: config.saml ?? FRESH_SAML };
	const scopes = config.scopes.length > 0 ? config.scopes : FRESH.config.scopes;
	return { protocol, scopes, saml: undefined };
}

/** Whether the stored secret belongs to the provider and the client of the draft; with SAML it is a key of our own. */
export function keepsSecret(stored: Connection, { config }: Draft): boolean {
	const before = stored?.hasSecret ? stored.config : null;
	if (config.protocol === 'saml') return before?.protocol === 'saml';
	return (
		!!before &&
		before.protocol === config.protocol &&
		before.issuer === config.issuer.trim() &&
		before.clientId === config.clientId.trim()
	);
}

/** What is sent: a secret only when one was typed or none is kept. */
export function bodyOf(draft: Draft, keeps: boolean): SsoForm {
	const { clientSecret, spPrivateKey, ...rest } = draft;
	if (rest.config.protocol === 'saml') return spPrivateKey || !keeps ? { ...rest, spPrivateKey } : rest;
	return clientSecret || !keeps ? { ...rest, clientSecret } : rest;
}

export function missing(draft: Draft): Record<string, string> {
	const errors: Record<string, string> = {};
	const needed = m.sso_missing();
	if (!draft.displayName.trim()) errors.displayName = needed;
	if (!draft.config.issuer.trim()) errors.issuer = needed;
	const { saml } = draft.config;
	if (!saml && !draft.config.clientId.trim()) errors.clientId = needed;
	if (saml && !saml.signOnUrl.trim()) errors.signOnUrl = needed;
	if (saml && saml.certificates.length === 0) errors.certificates = needed;
	for (const name of ['email', 'name', 'groups', 'roles'] as const)
		if (!draft.config.claims[name].trim()) errors[`claims.${name}`] = needed;
	if (draft.config.rules.some((rule) => !rule.claim.trim() || !rule.value.trim())) errors.rules = needed;
	return errors;
}

/** What is wrong with what only SAML has. */
const OF_SAML: Record<string, () => string> = {
	signOnUrl: m.sso_saml_sign_on_invalid,
	certificates: m.sso_saml_certificates_invalid,
	spCertificate: m.sso_saml_certificate_invalid,
	spPrivateKey: m.sso_saml_key_invalid
};

/** What the server found wrong: a sentence for each field, and one for the whole form. */
export function failureOf(error: unknown, saml: boolean): { fields: Record<string, string>; text: string | null } {
	const problem = toProblem(error);
	const [address, secret] = saml ? ['signOnUrl', 'spPrivateKey'] : ['issuer', 'clientSecret'];
	if (problem.code === 'PRIVATE_HOST_BLOCKED') return { fields: { [address]: problemText(problem) }, text: null };
	if (problem.code === 'sso_sp_key_required') return { fields: { [secret]: m.sso_saml_key_required() }, text: null };
	if (problem.code === 'sso_config_unreadable') return { fields: {}, text: m.sso_unreadable() };
	const fields: Record<string, string> = {};
	const { issues } = problem.data;
	for (const issue of Array.isArray(issues) ? issues : []) {
		const path = String(issue?.path);
		const known = Object.hasOwn(OF_SAML, path) ? OF_SAML[path] : undefined;
		if (known) fields[path] = known();
		else if (path === 'issuer' && !saml) fields.issuer = m.sso_issuer_invalid();
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
