/** One's own account and its sessions. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import type { Account, AccountSession } from '#lib/api/types.ts';

export const accountQuery = () => ({
	queryKey: keys.account,
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<Account> => send(api.GET('/api/app/account', { signal }))
});

export const sessionsQuery = () => ({
	queryKey: keys.accountSessions,
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<AccountSession[]> =>
		(await send(api.GET('/api/app/account/sessions', { signal }))).sessions,
	staleTime: 0
});
