import { redirect } from '@sveltejs/kit';
import { mayHandOff, noteHandOff } from '#lib/auth/hand-off.ts';
import { landing } from '#lib/session/landing.ts';
import { readSession } from '#lib/session/session.ts';
import { paths, safeNext } from '#lib/shell/paths.ts';

export async function load({ url }) {
	const session = await readSession();
	const next = safeNext(url.searchParams.get('next'));
	if (session.setupRequired) redirect(307, paths.setup());
	if (session.user) redirect(307, next ?? landing(session));
	const idle = url.searchParams.get('reason') === 'idle';
	const refused = url.searchParams.has('trusted_headers_error');
	const handOff = session.trustedHeaders;
	const refusal = url.searchParams.has('error')
		? (await import('#lib/auth/refusal.ts')).refusalOf(url.searchParams)
		: null;
	if (handOff && !idle && !refused && !refusal && mayHandOff() && noteHandOff()) {
		location.replace(paths.handOff(next));
		// Nothing of the form shows while the browser leaves.
		await new Promise(() => {});
	}
	return { next, idle, refused, refusal, handOff, passkeys: session.passkeys, sso: session.sso };
}
