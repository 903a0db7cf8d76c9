import { redirect } from '@sveltejs/kit';
import { readSession } from '#lib/session/session.ts';
import { landing } from '#lib/session/landing.ts';

export async function load() {
	const session = await readSession();
	if (!session.setupRequired) redirect(307, landing(session));
	return { tokenRequired: session.setupTokenRequired, version: session.version };
}
