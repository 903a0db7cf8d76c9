/** One's own API keys in an organization. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { ApiKey, CreatedApiKey } from '#lib/api/types.ts';

export const apiKeysQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'apiKeys'),
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<ApiKey[]> =>
		(await send(api.GET('/api/app/api-keys', { params: { query: { orgId } }, signal }))).keys
});

const reread = (orgId: string) => queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'apiKeys') });

/** Makes a key; the answer holds its secret, which nothing shows again. `expiresInDays` null never expires. */
export async function createApiKey(orgId: string, name: string, expiresInDays: number | null): Promise<CreatedApiKey> {
	const created = await send(
		api.POST('/api/app/api-keys', { params: { query: { orgId } }, body: { name, expiresInDays } })
	);
	await reread(orgId);
	return created;
}

export async function revokeApiKey(orgId: string, id: string): Promise<void> {
	await send(api.DELETE('/api/app/api-keys/{id}', { params: { query: { orgId }, path: { id } } }));
	await reread(orgId);
}
