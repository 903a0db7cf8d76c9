/** Whom rules are about, by name. */
import type { ApiKeyName, GoneApiKey, Member, Role, Team } from '#lib/api/types.ts';
import { m } from '#lib/paraglide/messages.js';
import { ROLES, roleName } from '#lib/session/roles.ts';
import type { Target } from './policies.ts';

export type Scope = Target['scope'];

export function scopeLabel(scope: Scope): string {
	switch (scope) {
		case 'user':
			return m.governance_scope_user();
		case 'team':
			return m.governance_scope_team();
		case 'role':
			return m.governance_scope_role();
		case 'default':
			return m.governance_scope_default();
		case 'org':
			return m.governance_scope_org();
		case 'apiKey':
			return m.governance_scope_key();
	}
}

/** The id that a rule names, when it names one. */
export const targetId = (target: Target) => (target.scope === 'apiKey' ? target.apiKeyId : target.scopeId);

/** The same rule about somebody else. */
export function aimed<R extends Target>(rule: R, scope: Scope, id: string): R {
	const next: R = { ...rule, scope };
	delete next.scopeId;
	delete next.apiKeyId;
	if (scope === 'apiKey') next.apiKeyId = id;
	else if (scope === 'user' || scope === 'team' || scope === 'role') next.scopeId = id;
	return next;
}

/** What rules can name, besides roles. */
export interface Nameable {
	members: readonly Member[];
	teams: readonly Team[];
	keys: readonly ApiKeyName[];
	/** Keys that rules name and that do not work any more. */
	gone: readonly GoneApiKey[];
}

export interface Named {
	value: string;
	label: string;
}

/** What a rule of a scope can name, in the order in which it is looked for. */
export function choices(scope: Scope, { members, teams, keys }: Nameable): Named[] {
	switch (scope) {
		case 'user':
			return members.map(({ userId, name, email }) => ({ value: userId, label: `${name} (${email})` }));
		case 'team':
			return teams.map(({ id, name }) => ({ value: id, label: name }));
		case 'role':
			return ROLES.map((role) => ({ value: role, label: roleName(role) }));
		case 'apiKey':
			return keys.map(({ id, name, holder }) => ({ value: id, label: `${name} (${holder})` }));
		default:
			return [];
	}
}

/** Whom a rule is about, in words. One whose target is gone stays readable. */
export function targetName(target: Target, nameable: Nameable): string {
	const { members, teams, keys } = nameable;
	switch (target.scope) {
		case 'user':
			return members.find(({ userId }) => userId === target.scopeId)?.name ?? m.governance_gone_person();
		case 'team': {
			const team = teams.find(({ id }) => id === target.scopeId)?.name;
			return team === undefined ? m.governance_gone_team() : m.governance_target_team({ team });
		}
		case 'role':
			return m.governance_target_role({ role: roleName(target.scopeId as Role) });
		case 'apiKey':
			return keys.find(({ id }) => id === target.apiKeyId)?.name ?? goneName(target, nameable);
		default:
			return scopeLabel(target.scope);
	}
}

/** What became of a key. */
function keyStatus(status: GoneApiKey['status']): string {
	switch (status) {
		case 'expired':
			return m.governance_key_expired();
		case 'disabled':
			return m.governance_key_disabled();
		case 'revoked':
			return m.governance_key_revoked();
		case 'formerMember':
			return m.governance_gone_person();
		case 'unavailable':
			return m.governance_key_unavailable();
		case 'unknown':
			return m.governance_key_unknown();
	}
}

/** What a target that is gone is called. */
export function goneName({ scope, scopeId, apiKeyId }: Target, { gone }: Nameable): string {
	if (scope === 'apiKey') {
		const key = gone.find(({ id }) => id === (apiKeyId ?? scopeId));
		const status = keyStatus(key?.status ?? 'unknown');
		return key?.name === undefined ? status : m.governance_gone_key({ name: key.name, status });
	}
	return scope === 'team' ? m.governance_gone_team() : m.governance_gone_person();
}
