/** Where a visitor belongs who did not ask for a page. */
import type { OrganizationSummary, Session } from '#lib/api/types.ts';
import { paths } from '#lib/shell/paths.ts';

const LAST_KEY = 'tale.organization';

/** Remembers the organization to open next time. */
export function rememberOrganization(orgId: string): void {
	try {
		localStorage.setItem(LAST_KEY, orgId);
	} catch {
		// Without storage the server's choice stands.
	}
}

function remembered(): string | null {
	try {
		return localStorage.getItem(LAST_KEY);
	} catch {
		return null;
	}
}

/** The organizations a person may open; a disabled membership stays listed on the server only. */
export function openOrganizations(session: Session): OrganizationSummary[] {
	return session.organizations.filter(({ role }) => role !== 'disabled');
}

export function landing(session: Session): string {
	if (session.setupRequired) return paths.setup();
	if (!session.user) return paths.logIn();
	if (session.passwordChange) return paths.changePassword(session.user.id);
	const { activeOrganizationId } = session;
	const organizations = openOrganizations(session);
	const wanted = [remembered(), activeOrganizationId];
	const open =
		wanted.find((id) => organizations.some((organization) => organization.id === id)) ?? organizations[0]?.id;
	return open ? paths.newChat(open) : paths.createOrganization();
}
