/** The rows of the credential table: each credential, and providers of one's own that need none. */
import type { Credential, Provider, Subscription } from '#lib/api/types.ts';
import { m } from '#lib/paraglide/messages.js';

export interface Row {
	id: string;
	provider: Provider;
	/** Absent for a provider without a key, such as a local server. */
	credential?: Credential;
}

export function rowsOf(providers: readonly Provider[]): Row[] {
	return providers.flatMap((provider): Row[] => {
		if (provider.credentials.length === 0) {
			return provider.kind === 'shipped' ? [] : [{ id: provider.slug, provider }];
		}
		return provider.credentials.map((credential) => ({ id: credential.id, provider, credential }));
	});
}

export interface SubscriptionRow {
	provider: Provider;
	subscription: Subscription;
}

/** The subscriptions of all providers. */
export function subscriptionsOf(providers: readonly Provider[]): SubscriptionRow[] {
	return providers.flatMap((provider) => provider.subscriptions.map((subscription) => ({ provider, subscription })));
}

/** The providers whose models are read from themselves, as far as they can be asked. */
export function readLists(providers: readonly Provider[]): Provider[] {
	return providers.filter(
		({ catalogSource, credentials, kind }) =>
			(catalogSource === 'models-endpoint' || catalogSource === 'openrouter-api') &&
			(kind === 'custom' || credentials.some(({ enabled }) => enabled))
	);
}

/** How many models a row makes usable. */
export function modelCount({ provider, credential }: Row): number {
	const allowed = credential?.modelAllowlist ?? [];
	return allowed.length > 0 ? allowed.length : provider.models.length;
}

/** Whether credentials carry the address themselves, as on Azure. */
export function needsEndpoint(provider: Provider): boolean {
	return provider.kind === 'shipped' && !provider.baseUrl;
}

/** The provider as people call it; the demo's own name is a sentence, which stands beside it instead. */
export function providerName({ provider }: Row): string {
	return provider.kind === 'demo' ? m.providers_demo_short() : provider.displayName;
}

/** What tells this row from the others of its provider. */
export function rowName({ provider, credential }: Row): string {
	if (provider.kind === 'demo') return m.providers_demo_what();
	return credential?.name ?? provider.displayName;
}
