/** Roles by name and by what they are for, in the interface language. */
import type { Role } from '#lib/api/types.ts';
import { m } from '#lib/paraglide/messages.js';

/** Highest first, as lists show them. */
export const ROLES = ['owner', 'admin', 'developer', 'editor', 'member'] as const satisfies readonly Role[];

/** Roles that are given to people; the owner's is only handed over. */
export const GIVEN_ROLES = ['admin', 'developer', 'editor', 'member'] as const satisfies readonly Role[];
export type GivenRole = (typeof GIVEN_ROLES)[number];

export function roleName(role: Role): string {
	switch (role) {
		case 'owner':
			return m.role_owner();
		case 'admin':
			return m.role_admin();
		case 'developer':
			return m.role_developer();
		case 'editor':
			return m.role_editor();
		case 'member':
			return m.role_member();
		case 'disabled':
			return m.role_disabled();
	}
}

export function roleHint(role: GivenRole): string {
	switch (role) {
		case 'admin':
			return m.role_admin_hint();
		case 'developer':
			return m.role_developer_hint();
		case 'editor':
			return m.role_editor_hint();
		case 'member':
			return m.role_member_hint();
	}
}
