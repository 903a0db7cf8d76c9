/** Model providers and their credentials. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type {
	ApiFormat,
	Broker,
	BrokerTest,
	CatalogResult,
	CheckedModels,
	Credential,
	Model,
	Provider,
	ProviderTest,
	Subscription
} from '#lib/api/types.ts';

export const providersQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'providers'),
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Provider[]> =>
		(await send(api.GET('/api/app/providers', { params: { query: { orgId } }, signal }))).providers
});

/** A change of providers also changes what chats and the embedding page offer. */
async function reread(orgId: string): Promise<void> {
	await Promise.all(
		['providers', 'composer', 'embedding', 'transcription'].map((topic) =>
			queryClient.invalidateQueries({ queryKey: keys.org(orgId, topic) })
		)
	);
}

export async function addDemo(orgId: string): Promise<void> {
	await send(api.POST('/api/app/providers/demo', { params: { query: { orgId } } }));
	await reread(orgId);
}

export interface CustomProvider {
	displayName: string;
	apiFormat: ApiFormat;
	baseUrl: string;
	models: Model[];
	extraBody?: Record<string, unknown>;
	apiKey?: string;
}

/** The identifier of a custom provider, made of its label: `Leeds GPU server` is `leeds-gpu-server`. */
export function slugOf(displayName: string): string {
	const slug = displayName
		.normalize('NFKD')
		.replace(/\p{M}+/gu, '')
		.toLowerCase()
		.replace(/[^a-z0-9]+/g, '-')
		.replace(/^-+|-+$/g, '')
		.slice(0, 64)
		.replace(/-+$/, '');
	return slug || 'custom-provider';
}

export async function addProvider(orgId: string, provider: CustomProvider): Promise<Provider> {
	const body = { name: slugOf(provider.displayName), ...provider };
	const added = await send(api.POST('/api/app/providers', { params: { query: { orgId } }, body }));
	await reread(orgId);
	return added;
}

export async function changeProvider(
	orgId: string,
	{ slug, version }: Provider,
	change: Partial<Omit<CustomProvider, 'apiFormat'>>
): Promise<Provider> {
	const params = { query: { orgId }, path: { slug } };
	const changed = await send(api.PATCH('/api/app/providers/{slug}', { params, body: { version, ...change } }));
	await reread(orgId);
	return changed;
}

export async function removeProvider(orgId: string, { slug, version }: Provider): Promise<void> {
	await send(api.DELETE('/api/app/providers/{slug}', { params: { query: { orgId, version }, path: { slug } } }));
	await reread(orgId);
}

export async function discoverModels(
	orgId: string,
	body: { apiFormat: ApiFormat; baseUrl: string; apiKey?: string },
	signal: AbortSignal
): Promise<Model[]> {
	return (await send(api.POST('/api/app/providers/discover', { params: { query: { orgId } }, body, signal }))).models;
}

export function testProvider(
	orgId: string,
	slug: string,
	body: { credentialId?: string; model?: string },
	signal: AbortSignal
): Promise<ProviderTest> {
	return send(
		api.POST('/api/app/providers/{slug}/test', { params: { query: { orgId }, path: { slug } }, body, signal })
	);
}

/** Reads every list of models that comes from a provider again. */
export async function refreshCatalogs(orgId: string): Promise<CatalogResult[]> {
	const done = await send(api.POST('/api/app/catalogs/refresh', { params: { query: { orgId } } }));
	await reread(orgId);
	return done.catalogs;
}

/** Reads the list of models with one credential's key. */
export async function checkModels(orgId: string, id: string, signal: AbortSignal): Promise<CheckedModels> {
	const checked = await send(
		api.POST('/api/app/credentials/{id}/check', { params: { query: { orgId }, path: { id } }, signal })
	);
	await reread(orgId);
	return checked;
}

export interface NewCredential {
	name: string;
	authMethod: 'api-key' | 'env';
	apiKey?: string;
	secretEnv?: string;
	endpoint?: string;
	modelAllowlist?: string[];
}

export async function addCredential(orgId: string, slug: string, body: NewCredential): Promise<Credential> {
	const params = { query: { orgId }, path: { slug } };
	const added = await send(api.POST('/api/app/providers/{slug}/credentials', { params, body }));
	await reread(orgId);
	return added;
}

export interface CredentialChange {
	name?: string;
	apiKey?: string;
	endpoint?: string;
	modelAllowlist?: string[];
	enabled?: boolean;
	isDefault?: boolean;
}

export async function changeCredential(
	orgId: string,
	{ id, version }: Credential,
	change: CredentialChange
): Promise<Credential> {
	const params = { query: { orgId }, path: { id } };
	const changed = await send(api.PATCH('/api/app/credentials/{id}', { params, body: { version, ...change } }));
	await reread(orgId);
	return changed;
}

export async function removeCredential(orgId: string, { id, version }: Credential): Promise<void> {
	await send(api.DELETE('/api/app/credentials/{id}', { params: { query: { orgId, version }, path: { id } } }));
	await reread(orgId);
}

export interface SubscriptionBody {
	name: string;
	/** Either a broker, */
	broker?: Broker;
	brokerSecret?: string;
	/** or a token. */
	token?: string;
	targetEnvVar?: string;
	accountId?: string;
	modelAllowlist: string[];
}

export async function addSubscription(orgId: string, slug: string, body: SubscriptionBody): Promise<Subscription> {
	const params = { query: { orgId }, path: { slug } };
	const added = await send(api.POST('/api/app/providers/{slug}/subscriptions', { params, body }));
	await reread(orgId);
	return added;
}

export async function changeSubscription(
	orgId: string,
	{ id, version }: Subscription,
	change: Partial<SubscriptionBody> & { enabled?: boolean }
): Promise<Subscription> {
	const params = { query: { orgId }, path: { id } };
	const changed = await send(api.PATCH('/api/app/subscriptions/{id}', { params, body: { version, ...change } }));
	await reread(orgId);
	return changed;
}

export async function removeSubscription(orgId: string, { id, version }: Subscription): Promise<void> {
	await send(api.DELETE('/api/app/subscriptions/{id}', { params: { query: { orgId, version }, path: { id } } }));
	await reread(orgId);
}

export function testSubscription(orgId: string, id: string, signal: AbortSignal): Promise<BrokerTest> {
	return send(api.POST('/api/app/subscriptions/{id}/test', { params: { query: { orgId }, path: { id } }, signal }));
}
