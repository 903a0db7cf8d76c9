/** Who is signed in here, and what they may do. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import { holdHandOff } from '#lib/auth/hand-off.ts';
import { paths } from '#lib/shell/paths.ts';
import type { Permissions, Session } from '#lib/api/types.ts';

export const sessionQuery = () => ({
	queryKey: keys.session,
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<Session> => send(api.GET('/api/app/session', { signal })),
	staleTime: 5 * 60_000
});

export const permissionsQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'permissions'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<Permissions> =>
		send(api.GET('/api/app/permissions', { params: { query: { orgId } }, signal })),
	staleTime: 5 * 60_000
});

/** The session from the cache, or from the server when it is not there yet. */
export function readSession(): Promise<Session> {
	return queryClient.ensureQueryData(sessionQuery());
}

/** Ends the session and loads the sign-in page anew, so that nothing that was read in it stays in memory. */
export async function signOut(): Promise<void> {
	await send(api.POST('/api/auth/sign-out'));
	holdHandOff();
	location.assign(paths.logIn());
}
