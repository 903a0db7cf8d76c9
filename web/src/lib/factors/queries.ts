/** One's own second factors. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import type { Factors } from '#lib/api/types.ts';

export const factorsQuery = () => ({
	queryKey: [...keys.account, 'factors'] as const,
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<Factors> =>
		send(api.GET('/api/app/account/factors', { signal })),
	staleTime: 0
});
