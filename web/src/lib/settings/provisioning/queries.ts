/** Provisioning by a directory (SCIM). */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { Provisioning } from '#lib/api/types.ts';

export const provisioningQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'provisioning'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<Provisioning> =>
		send(api.GET('/api/app/provisioning', { params: { query: { orgId } }, signal }))
});

const reread = (orgId: string) => queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'provisioning') });

export async function setProvisioning(orgId: string, enabled: boolean): Promise<void> {
	await send(api.PUT('/api/app/provisioning', { params: { query: { orgId } }, body: { enabled } }));
	await reread(orgId);
}

/** Makes a token in the place of the one before; the answer holds it whole, which nothing shows again. */
export async function makeProvisioningToken(orgId: string): Promise<string> {
	const { token } = await send(api.POST('/api/app/provisioning/token', { params: { query: { orgId } } }));
	await reread(orgId);
	return token;
}
