/** What the palette finds on the server. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import type { SearchResults } from '#lib/api/types.ts';

export type Scope = 'all' | 'chats';

export const searchQuery = (orgId: string, q: string, scope: Scope) => ({
	queryKey: keys.org(orgId, 'search', scope, q),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<SearchResults> =>
		send(api.GET('/api/app/search', { params: { query: { orgId, q, scope } }, signal })),
	staleTime: 10_000
});
