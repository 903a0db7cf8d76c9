import { error, redirect } from '@sveltejs/kit';
import { queryClient } from '#lib/api/query-client.ts';
import { enrollPath } from '#lib/factors/wall.ts';
import { live } from '#lib/live/live.svelte.ts';
import { landing, openOrganizations, rememberOrganization } from '#lib/session/landing.ts';
import { permissionsQuery, readSession } from '#lib/session/session.ts';
import { paths } from '#lib/shell/paths.ts';

export async function load({ params, url }) {
	const session = await readSession();
	if (session.setupRequired) redirect(307, paths.setup());
	if (!session.user) redirect(307, paths.logIn(url.pathname + url.search));
	if (session.passwordChange) redirect(307, landing(session));
	const organization = openOrganizations(session).find((candidate) => candidate.id === params.org);
	if (!organization) error(404);
	const wanted = session.secondFactorWanted.find(({ organizationId }) => organizationId === organization.id);
	if (wanted?.over) redirect(307, enrollPath(url.pathname));
	rememberOrganization(organization.id);
	live.prepare(organization.id);
	const permissions = await queryClient.ensureQueryData(permissionsQuery(organization.id));
	return { session, organization, permissions, wanted };
}
