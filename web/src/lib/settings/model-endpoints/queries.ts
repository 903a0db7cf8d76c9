/** Where one's own keys call models, and which. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import type { ModelEndpoints } from '#lib/api/types.ts';

export const modelEndpointsQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'modelEndpoints'),
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<ModelEndpoints> =>
		await send(api.GET('/api/app/model-endpoints', { params: { query: { orgId } }, signal }))
});
