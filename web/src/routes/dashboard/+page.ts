import { redirect } from '@sveltejs/kit';
import { landing } from '#lib/session/landing.ts';
import { readSession } from '#lib/session/session.ts';

export async function load() {
	redirect(307, landing(await readSession()));
}
