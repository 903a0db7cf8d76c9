/** Sign-in at the organization's identity provider. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { SamlMetadata, SsoForm, SsoSettings, SsoTest } from '#lib/api/types.ts';

export const ssoQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'sso'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<SsoSettings> =>
		send(api.GET('/api/app/sso', { params: { query: { orgId } }, signal }))
});

const reread = (orgId: string) => queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'sso') });

export async function saveSso(orgId: string, body: SsoForm): Promise<void> {
	await send(api.PUT('/api/app/sso', { params: { query: { orgId } }, body }));
	await reread(orgId);
}

export async function removeSso(orgId: string): Promise<void> {
	await send(api.DELETE('/api/app/sso', { params: { query: { orgId } } }));
	await reread(orgId);
}

/** Reads what a provider says about itself, without saving anything. */
export const readMetadata = (orgId: string, body: { url: string } | { document: string }): Promise<SamlMetadata> =>
	send(api.POST('/api/app/sso/saml/metadata', { params: { query: { orgId } }, body }));

/** Tries the form as it is, without saving it. */
export const testSso = (orgId: string, body: SsoForm): Promise<SsoTest> =>
	send(api.POST('/api/app/sso/test', { params: { query: { orgId } }, body }));
