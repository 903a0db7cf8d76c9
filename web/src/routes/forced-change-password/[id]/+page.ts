import { redirect } from '@sveltejs/kit';
import { landing } from '#lib/session/landing.ts';
import { readSession } from '#lib/session/session.ts';
import { paths, safeNext } from '#lib/shell/paths.ts';

export async function load({ url, params }) {
	const session = await readSession();
	if (!session.user) redirect(307, paths.logIn());
	const next = safeNext(url.searchParams.get('next'));
	if (!session.passwordChange) redirect(307, next ?? landing(session));
	// The address of somebody else who used this browser.
	if (params.id !== session.user.id) redirect(307, landing(session));
	return { user: session.user, reason: session.passwordChange, next };
}
