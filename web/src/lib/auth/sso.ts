/** Sign-in at an organization's identity provider, as far as the sign-in page has a part in it. */
import { api, send } from '#lib/api/client.ts';
import type { SsoOffer } from '#lib/api/types.ts';
import { base } from '#lib/shell/paths.ts';

/** The connections for the domain of `email`; without one those for any address. */
export const offered = (email?: string): Promise<SsoOffer> =>
	send(api.GET('/api/sso/connections', { params: { query: email ? { email } : {} } }));

/** Leaves for the provider of a connection; `next` is the page to open afterwards. */
export function leave(connection: string, next: string | undefined): void {
	const query = new URLSearchParams({ connection, ...(next ? { next } : {}) });
	location.assign(`${base}/api/sso/start?${query}`);
}

/** The only connection that a person can mean, if there is one. */
export function onlyOne({ connections, byAddress }: SsoOffer, asked: boolean): string | undefined {
	return connections.length === 1 && (asked || !byAddress) ? connections[0]?.id : undefined;
}
