/**
 * The open organization, for every component below the dashboard layout:
 *
 * ```ts
 * const org = getOrg();
 * org.id; org.name; org.can('knowledge.write');
 * ```
 */
import { createContext } from 'svelte';
import type { OrganizationSummary, Permissions, Role, Session } from '#lib/api/types.ts';
import type { Capability } from './capabilities.ts';

type User = NonNullable<Session['user']>;

export class OpenOrg {
	/** Changes only with the organization, not with every read of the session: effects hang on it. */
	readonly id: string = $derived.by(() => this.#read().organization.id);
	readonly #read: () => { organization: OrganizationSummary; permissions: Permissions; session: Session };

	constructor(read: () => { organization: OrganizationSummary; permissions: Permissions; session: Session }) {
		this.#read = read;
	}

	get name(): string {
		return this.#read().organization.name;
	}
	get slug(): string {
		return this.#read().organization.slug;
	}
	/** `null` when it looks as Tale does by itself. */
	get branding(): OrganizationSummary['branding'] {
		return this.#read().organization.branding;
	}
	get role(): Role {
		return this.#read().permissions.role;
	}
	get session(): Session {
		return this.#read().session;
	}
	get user(): User {
		const { user } = this.#read().session;
		if (!user) throw new Error('the dashboard is only shown to signed-in people');
		return user;
	}
	can(capability: Capability): boolean {
		return this.#read().permissions.capabilities.includes(capability);
	}
}

export const [getOrg, setOrg] = createContext<OpenOrg>();
