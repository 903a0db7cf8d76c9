/** Sign-in by the headers of a reverse proxy. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { CreatedTrustedKey, TrustedHeaders, TrustedHeaderSettings } from '#lib/api/types.ts';

export const trustedHeadersQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'trustedHeaders'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<TrustedHeaders> =>
		send(api.GET('/api/app/trusted-headers', { params: { query: { orgId } }, signal }))
});

const reread = (orgId: string) => queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'trustedHeaders') });

export async function saveTrustedHeaders(orgId: string, body: TrustedHeaderSettings): Promise<void> {
	await send(api.PUT('/api/app/trusted-headers/settings', { params: { query: { orgId } }, body }));
	await reread(orgId);
}

export async function saveFrameOrigins(orgId: string, origins: string[]): Promise<void> {
	await send(api.PUT('/api/app/trusted-headers/embedding', { params: { query: { orgId } }, body: { origins } }));
	await reread(orgId);
}

/** Makes a key; the answer holds it whole, which nothing shows again. */
export async function createTrustedKey(
	orgId: string,
	body: { name: string; signedOnly: boolean }
): Promise<CreatedTrustedKey> {
	const created = await send(api.POST('/api/app/trusted-headers/keys', { params: { query: { orgId } }, body }));
	await reread(orgId);
	return created;
}

/** Sets whether a key takes signed assertions only; the answer is what they are signed with. */
export async function setSignedOnly(orgId: string, id: string, signedOnly: boolean): Promise<string> {
	const { signingSecret } = await send(
		api.PATCH('/api/app/trusted-headers/keys/{id}', {
			params: { query: { orgId }, path: { id } },
			body: { signedOnly }
		})
	);
	await reread(orgId);
	return signingSecret;
}

/** Revokes a key, and ends the sessions that it began when told to. */
export async function revokeTrustedKey(orgId: string, id: string, endSessions: boolean): Promise<void> {
	const params = { query: { orgId, endSessions }, path: { id } };
	await send(api.DELETE('/api/app/trusted-headers/keys/{id}', { params }));
	await reread(orgId);
}
