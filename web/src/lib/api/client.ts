/**
 * The only way to the server: a client typed by the API contract.
 *
 * ```ts
 * const { members } = await send(api.GET('/api/app/members', { params: { query: { orgId } }, signal }));
 * ```
 */
import createClient from 'openapi-fetch';
import { connectivity } from '#lib/live/connectivity.svelte.ts';
import { base } from '#lib/shell/paths.ts';
import { ApiProblem, NETWORK } from './problem.ts';
import type { paths } from './schema.ts';
import { watchSession } from './signed-out.ts';

/** `fetch` that tells the connectivity watch whether the server could be reached. Cancelled calls say nothing. */
async function watchedFetch(request: Request): Promise<Response> {
	try {
		const response = await fetch(request);
		// A gateway in front that finds nobody behind it is the same outage as no answer at all; so is its 503.
		const gateway = response.status === 503 && !response.headers.has('x-request-id');
		if (gateway || response.status === 502 || response.status === 504) connectivity.failed();
		else connectivity.reached();
		return response;
	} catch (error) {
		if (request.signal.aborted) throw error;
		connectivity.failed();
		throw new ApiProblem(0, NETWORK, error instanceof Error ? error.message : String(error));
	}
}

export const api = createClient<paths>({
	baseUrl: typeof location === 'undefined' ? '' : location.origin + base,
	credentials: 'same-origin',
	fetch: watchedFetch
});

/** Waits for a call and returns its body; throws `ApiProblem` when the server refused. */
export async function send<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
	const { data, error, response } = await call;
	if (response.ok) return data as T;
	const problem = ApiProblem.from(response, error);
	watchSession(problem);
	throw problem;
}
