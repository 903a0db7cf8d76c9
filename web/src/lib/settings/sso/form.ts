/** The form of a connection: what it begins with, what is missing, what the server found wrong. */
import { toProblem } from '#lib/api/problem.ts';
import type { SsoConfig, SsoForm, SsoSettings } from '#lib/api/types.ts';
import { problemText } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';

export type Draft = SsoForm & { clientSecret: string; spPrivateKey: string };

/** What the part of the form takes that is about one kind of provider. */
export interface PartProps {
	form: Draft;
	errors: Record<string, string>;
	/** Whether the stored secret stays when none is typed. */
	keeps: boolean;
	onchange: (change: Partial<Draft>) => void;
}
export type Saml = NonNullable<SsoConfig['saml']>;
export type OAuth2 = NonNullable<SsoConfig['oauth2']>;

/** What SAML begins with. */
export const FRESH_SAML: Saml = {
	signOnUrl: '',
	certificates: [],
	requireSignedAssertions: true,
	requireEncryptedAssertions: false,
	spCertificate: null
};

/** What OAuth 2.0 begins with. */
export const FRESH_OAUTH2: OAuth2 = {
	authorizationUrl: '',
	tokenUrl: '',
	userInfoUrl: '',
	subject: '',
	emailVerified: 'email_verified',
	secretInBody: false
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
		excludedGroups: [],
		ownCallback: false
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
	// What OAuth 2.0 calls its issuer is none that can be discovered.
	const issuer = config.oauth2 ? '' : config.issuer;
	if (protocol === 'saml')
		return { protocol, issuer, clientId: '', scopes: [], saml: config.saml ?? FRESH_SAML, oauth2: undefined };
	if (protocol === 'oauth2')
		return { protocol, issuer: '', scopes: [], saml: undefined, oauth2: config.oauth2 ?? FRESH_OAUTH2 };
	const scopes = config.scopes.length > 0 ? config.scopes : FRESH.config.scopes;
	return { protocol, issuer, scopes, saml: undefined, oauth2: undefined };
}

/** The client, and the provider by what it is found by. */
const partyOf = ({ clientId, issuer, oauth2 }: SsoConfig): string[] =>
	[clientId, ...(oauth2 ? [oauth2.authorizationUrl, oauth2.tokenUrl, oauth2.userInfoUrl] : [issuer])].map((text) =>
		text.trim()
	);

/** Whether the stored secret belongs to the provider and the client of the draft; with SAML it is a key of our own. */
export function keepsSecret(stored: Connection, { config }: Draft): boolean {
	const before = stored?.hasSecret ? stored.config : null;
	if (config.protocol === 'saml') return before?.protocol === 'saml';
	return (
		!!before &&
		before.protocol === config.protocol &&
		JSON.stringify(partyOf(before)) === JSON.stringify(partyOf(config))
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
	const { saml, oauth2 } = draft.config;
	if (!oauth2 && !draft.config.issuer.trim()) errors.issuer = needed;
	if (!saml && !draft.config.clientId.trim()) errors.clientId = needed;
	if (saml && !saml.signOnUrl.trim()) errors.signOnUrl = needed;
	if (saml && saml.certificates.length === 0) errors.certificates = needed;
	for (const name of ['authorizationUrl', 'tokenUrl', 'userInfoUrl', 'emailVerified'] as const)
		if (oauth2 && !oauth2[name].trim()) errors[name] = needed;
	for (const name of ['email', 'name', 'groups', 'roles'] as const)
		if (!draft.config.claims[name].trim()) errors[`claims.${name}`] = needed;
	if (draft.config.rules.some((rule) => !rule.claim.trim() || !rule.value.trim())) errors.rules = needed;
	return errors;
}

/** What is wrong with what only SAML has, or only OAuth 2.0. */
const OF_ONE: Record<string, () => string> = {
	authorizationUrl: m.sso_saml_sign_on_invalid,
	tokenUrl: m.sso_saml_sign_on_invalid,
	userInfoUrl: m.sso_saml_sign_on_invalid,
	signOnUrl: m.sso_saml_sign_on_invalid,
	certificates: m.sso_saml_certificates_invalid,
	spCertificate: m.sso_saml_certificate_invalid,
	spPrivateKey: m.sso_saml_key_invalid
};

/** What the server found wrong: a sentence for each field, and one for the whole form. */
export function failureOf(
	error: unknown,
	protocol: SsoConfig['protocol']
): { fields: Record<string, string>; text: string | null } {
	const problem = toProblem(error);
	const saml = protocol === 'saml';
	const [address, secret] = saml ? ['signOnUrl', 'spPrivateKey'] : ['issuer', 'clientSecret'];
	if (problem.code === 'PRIVATE_HOST_BLOCKED' && protocol !== 'oauth2')
		return { fields: { [address]: problemText(problem) }, text: null };
	if (problem.code === 'sso_sp_key_required') return { fields: { [secret]: m.sso_saml_key_required() }, text: null };
	if (problem.code === 'sso_config_unreadable') return { fields: {}, text: m.sso_unreadable() };
	const fields: Record<string, string> = {};
	const { issues } = problem.data;
	for (const issue of Array.isArray(issues) ? issues : []) {
		const path = String(issue?.path);
		const known = Object.hasOwn(OF_ONE, path) ? OF_ONE[path] : undefined;
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
