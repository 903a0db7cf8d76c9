/** A real identity provider on this machine: `oidc-provider` with its own login page, one client, and whoever logs in. */
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';

export const CLIENT = 'tale';
export const CLIENT_SECRET = 'a secret of the identity provider';

export interface IdentityProvider {
	issuer: string;
	/** What it says about people, by what they type as their login. */
	people: Record<string, Record<string, unknown>>;
	stop: () => void;
}

export async function startIdentityProvider(callback: string): Promise<IdentityProvider> {
	const server = createServer();
	await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
	const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	const people: IdentityProvider['people'] = {};
	const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
	const provider = new Provider(issuer, {
		clients: [{ client_id: CLIENT, client_secret: CLIENT_SECRET, redirect_uris: [callback] }],
		jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'rsa', use: 'sig', alg: 'RS256' }] },
		cookies: { keys: ['a key of the identity provider'] },
		claims: { openid: ['sub'], email: ['email'], profile: ['name', 'groups'] },
		pkce: { required: () => true },
		findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) })
	});
	server.on('request', provider.callback());
	return { issuer, people, stop: () => server.close() };
}
