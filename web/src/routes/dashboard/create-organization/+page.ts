import { redirect } from '@sveltejs/kit';
import { landing, openOrganizations } from '#lib/session/landing.ts';
import { readSession } from '#lib/session/session.ts';
import { paths } from '#lib/shell/paths.ts';

export async function load({ url }) {
	const session = await readSession();
	if (session.setupRequired) redirect(307, paths.setup());
	if (!session.user) redirect(307, paths.logIn(url.pathname));
	if (session.passwordChange) redirect(307, landing(session));
	return { allowed: session.canCreateOrganization, home: openOrganizations(session)[0]?.id };
}
