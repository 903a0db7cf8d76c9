import { redirect } from '@sveltejs/kit';
import { landing } from '#lib/session/landing.ts';
import { readSession } from '#lib/session/session.ts';
import { paths, safeNext } from '#lib/shell/paths.ts';

export async function load({ url }) {
	const session = await readSession();
	if (!session.user) redirect(307, paths.logIn(url.pathname + url.search));
	if (session.passwordChange) redirect(307, landing(session));
	const method = url.searchParams.get('method');
	return {
		user: session.user,
		next: safeNext(url.searchParams.get('next')) ?? landing(session),
		walled: session.secondFactorWanted.some(({ over }) => over),
		method: method === 'totp' || method === 'passkey' ? method : null
	};
}
