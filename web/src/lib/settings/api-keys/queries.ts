/** The API keys that a person sees in an organization. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { ApiKey, CreateApiKeyRequest, CreatedApiKey } from '#lib/api/types.ts';
import { describeProblems } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';

describeProblems({ API_KEY_REPLACED: m.problem_key_replaced, API_KEY_LIMIT: m.problem_key_limit });

export const apiKeysQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'apiKeys'),
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<ApiKey[]> =>
		(await send(api.GET('/api/app/api-keys', { params: { query: { orgId } }, signal }))).keys
});

const reread = (orgId: string) => queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'apiKeys') });

/** Makes a key; the answer holds its secret, which nothing shows again. `expiresInDays` null never expires. */
export async function createApiKey(orgId: string, body: CreateApiKeyRequest): Promise<CreatedApiKey> {
	const created = await send(api.POST('/api/app/api-keys', { params: { query: { orgId } }, body }));
	await reread(orgId);
	return created;
}

/** Makes the successor of a key; the old one works for so many hours more. */
export async function rotateApiKey(orgId: string, id: string, overlapHours: number): Promise<CreatedApiKey> {
	const created = await send(
		api.POST('/api/app/api-keys/{id}/rotate', { params: { query: { orgId }, path: { id } }, body: { overlapHours } })
	);
	await reread(orgId);
	return created;
}

export async function revokeApiKey(orgId: string, id: string): Promise<void> {
	await send(api.DELETE('/api/app/api-keys/{id}', { params: { query: { orgId }, path: { id } } }));
	await reread(orgId);
}
