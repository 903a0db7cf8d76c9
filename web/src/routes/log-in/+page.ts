import { redirect } from '@sveltejs/kit';
import { landing } from '#lib/session/landing.ts';
import { readSession } from '#lib/session/session.ts';
import { paths, safeNext } from '#lib/shell/paths.ts';

export async function load({ url }) {
	const session = await readSession();
	const next = safeNext(url.searchParams.get('next'));
	if (session.setupRequired) redirect(307, paths.setup());
	if (session.user) redirect(307, next ?? landing(session));
	return { next, idle: url.searchParams.get('reason') === 'idle' };
}
