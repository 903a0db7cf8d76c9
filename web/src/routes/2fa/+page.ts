import { redirect } from '@sveltejs/kit';
import { api, send } from '#lib/api/client.ts';
import { toProblem } from '#lib/api/problem.ts';
import { paths, safeNext } from '#lib/shell/paths.ts';

export async function load({ url }) {
	const next = safeNext(url.searchParams.get('next'));
	try {
		return { next, methods: await send(api.GET('/api/auth/two-factor')) };
	} catch (error) {
		if (toProblem(error).code === 'TWO_FACTOR_NOT_PENDING') redirect(307, paths.logIn(next));
		throw error;
	}
}
