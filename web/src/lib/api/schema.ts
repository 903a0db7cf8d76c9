/** The API contract in openapi-typescript's layout. */
import type { paths as ContentPaths } from './schema-content.ts';

export interface paths extends ContentPaths {
	'/api/app/session': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Session'] } } } }; put?: never; post?: never; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/setup': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': components['schemas']['SetupRequest'] } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': { user: components['schemas']['SessionUser']; organization: components['schemas']['OrganizationSummary'] } } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/auth/sign-up/email': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': { name: string; email: string; password: string } } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': { user: components['schemas']['SessionUser'] } } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/auth/sign-in/email': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': { email: string; password: string; rememberMe?: boolean } } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': { user: components['schemas']['SessionUser']; redirect: boolean } } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/auth/sign-out': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 204: { headers: Record<string, unknown>; content: { 'application/json'?: never } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/account': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Account'] } } } }; put?: never; post?: never; delete?: never; options?: never; head?: never; patch: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': { name: string } } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Account'] } } } }; trace?: never; };
	'/api/app/account/password': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': { currentPassword: string; newPassword: string } } }; responses: { 204: { headers: Record<string, unknown>; content: { 'application/json'?: never } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/account/sessions': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': { sessions: components['schemas']['AccountSession'][] } } } } }; put?: never; post?: never; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/account/sessions/{id}': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post?: never; delete: { parameters: { query?: never; header?: never; path: { id: string }; cookie?: never }; requestBody?: never; responses: { 204: { headers: Record<string, unknown>; content: { 'application/json'?: never } } } }; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/account/sessions/end-others': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 204: { headers: Record<string, unknown>; content: { 'application/json'?: never } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/preferences': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Preferences'] } } } }; put: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': components['schemas']['Preferences'] } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Preferences'] } } } }; post?: never; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/organizations': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': { name: string } } }; responses: { 201: { headers: Record<string, unknown>; content: { 'application/json': { id: string; slug: string; name: string } } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/organizations/{id}': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post?: never; delete?: never; options?: never; head?: never; patch: { parameters: { query?: never; header?: never; path: { id: string }; cookie?: never }; requestBody: { content: { 'application/json': { name: string } } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': { id: string; slug: string; name: string } } } } }; trace?: never; };
	'/api/app/permissions': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Permissions'] } } } }; put?: never; post?: never; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/members': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': { members: components['schemas']['Member'][] } } } } }; put?: never; post: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': components['schemas']['AddMemberRequest'] } }; responses: { 201: { headers: Record<string, unknown>; content: { 'application/json': { userId: string; created: boolean } } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/members/{userId}': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post?: never; delete: { parameters: { query: { orgId: string }; header?: never; path: { userId: string }; cookie?: never }; requestBody?: never; responses: { 204: { headers: Record<string, unknown>; content: { 'application/json'?: never } } } }; options?: never; head?: never; patch: { parameters: { query: { orgId: string }; header?: never; path: { userId: string }; cookie?: never }; requestBody: { content: { 'application/json': { role?: components['schemas']['Role']; name?: string; password?: string } } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Member'] } } } }; trace?: never; };
	'/api/app/members/{userId}/transfer-ownership': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query: { orgId: string }; header?: never; path: { userId: string }; cookie?: never }; requestBody?: never; responses: { 204: { headers: Record<string, unknown>; content: { 'application/json'?: never } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/api-keys': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': { keys: components['schemas']['ApiKey'][] } } } } }; put?: never; post: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': { name: string; expiresInDays: number | null } } }; responses: { 201: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['CreatedApiKey'] } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/api-keys/{id}': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post?: never; delete: { parameters: { query: { orgId: string }; header?: never; path: { id: string }; cookie?: never }; requestBody?: never; responses: { 204: { headers: Record<string, unknown>; content: { 'application/json'?: never } } } }; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/providers': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': { providers: components['schemas']['Provider'][] } } } } }; put?: never; post: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': components['schemas']['AddProviderRequest'] } }; responses: { 201: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Provider'] } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/providers/demo': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 201: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Provider'] } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/providers/discover': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': { apiFormat: components['schemas']['ApiFormat']; baseUrl: string; apiKey?: string } } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': { models: components['schemas']['Model'][] } } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/providers/{slug}': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post?: never; delete: { parameters: { query: { orgId: string; version: number }; header?: never; path: { slug: string }; cookie?: never }; requestBody?: never; responses: { 204: { headers: Record<string, unknown>; content: { 'application/json'?: never } } } }; options?: never; head?: never; patch: { parameters: { query: { orgId: string }; header?: never; path: { slug: string }; cookie?: never }; requestBody: { content: { 'application/json': { version: number; displayName?: string; baseUrl?: string; models?: components['schemas']['Model'][]; apiKey?: string } } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Provider'] } } } }; trace?: never; };
	'/api/app/providers/{slug}/test': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query: { orgId: string }; header?: never; path: { slug: string }; cookie?: never }; requestBody: { content: { 'application/json': { model?: string; credentialId?: string } } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['ProviderTest'] } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/providers/{slug}/credentials': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post: { parameters: { query: { orgId: string }; header?: never; path: { slug: string }; cookie?: never }; requestBody: { content: { 'application/json': components['schemas']['AddCredentialRequest'] } }; responses: { 201: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Credential'] } } } }; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/credentials/{id}': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get?: never; put?: never; post?: never; delete: { parameters: { query: { orgId: string; version: number }; header?: never; path: { id: string }; cookie?: never }; requestBody?: never; responses: { 204: { headers: Record<string, unknown>; content: { 'application/json'?: never } } } }; options?: never; head?: never; patch: { parameters: { query: { orgId: string }; header?: never; path: { id: string }; cookie?: never }; requestBody: { content: { 'application/json': { version: number; name?: string; apiKey?: string; endpoint?: string; modelAllowlist?: string[]; enabled?: boolean; isDefault?: boolean } } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['Credential'] } } } }; trace?: never; };
	'/api/app/knowledge/embedding': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['EmbeddingSettings'] } } } }; put: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody: { content: { 'application/json': components['schemas']['EmbeddingChoice'] } }; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': { requeued: number } } } } }; post?: never; delete: { parameters: { query: { orgId: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 204: { headers: Record<string, unknown>; content: { 'application/json'?: never } } } }; options?: never; head?: never; patch?: never; trace?: never; };
	'/api/app/search': { parameters: { query?: never; header?: never; path?: never; cookie?: never }; get: { parameters: { query: { orgId: string; q: string; scope?: 'all' | 'chats' }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Record<string, unknown>; content: { 'application/json': components['schemas']['SearchResults'] } } } }; put?: never; post?: never; delete?: never; options?: never; head?: never; patch?: never; trace?: never; };
}

export interface components {
	schemas: {
		Role: 'owner' | 'admin' | 'developer' | 'editor' | 'member' | 'disabled';
		SessionUser: { id: string; name: string; email: string };
		OrganizationSummary: { id: string; name: string; slug: string; role: components['schemas']['Role'] };
		Session: {
			user: components['schemas']['SessionUser'] | null;
			organizations: components['schemas']['OrganizationSummary'][];
			activeOrganizationId: string | null;
			setupRequired: boolean;
			setupTokenRequired: boolean;
			canCreateOrganization: boolean;
			version: string;
			demoAvailable: boolean;
		};
		SetupRequest: { name: string; email: string; password: string; organizationName: string; setupToken?: string };
		PasswordPolicy: {
			minLength: number;
			requireUpper: boolean;
			requireLower: boolean;
			requireDigit: boolean;
			requireSpecial: boolean;
		};
		Account: { id: string; name: string; email: string; hasPassword: boolean; passwordPolicy: components['schemas']['PasswordPolicy'] };
		AccountSession: {
			id: string;
			current: boolean;
			userAgent: string | null;
			network: string | null;
			createdAt: number;
			lastUsedAt: number;
		};
		Preferences: {
			locale: 'en' | 'de' | 'fr' | null;
			theme: 'light' | 'dark' | 'system';
			customInstructions: { enabled: boolean | null; text: string };
		};
		Permissions: { role: components['schemas']['Role']; capabilities: string[] };
		Member: {
			userId: string;
			name: string;
			email: string;
			role: components['schemas']['Role'];
			isCreator: boolean;
			joinedAt: number;
		};
		AddMemberRequest: { email: string; name?: string; role: components['schemas']['Role']; password?: string };
		ApiKey: { id: string; name: string; fragment: string; createdAt: number; expiresAt: number | null; lastUsedAt: number | null };
		CreatedApiKey: { id: string; key: string; name: string; expiresAt: number | null };
		ApiFormat: 'openai' | 'anthropic';
		Model: {
			id: string;
			displayName?: string | null;
			contextWindow: number;
			maxOutputTokens?: number | null;
			purposes: ('chat' | 'embedding')[];
			capabilities: { tools: boolean; vision: boolean; reasoning: boolean };
			dimensions?: number | null;
		};
		Credential: {
			id: string;
			name: string;
			authMethod: 'api-key' | 'env';
			masked?: string | null;
			secretEnv?: string | null;
			endpoint?: string | null;
			modelAllowlist: string[];
			enabled: boolean;
			isDefault: boolean;
			version: number;
			updatedAt: number;
		};
		Provider: {
			slug: string;
			displayName: string;
			kind: 'shipped' | 'custom' | 'demo';
			apiFormat: string;
			baseUrl: string | null;
			catalogSource: string;
			embedding: 'supported' | 'unsupported' | 'unknown';
			version: number;
			models: components['schemas']['Model'][];
			credentials: components['schemas']['Credential'][];
		};
		AddProviderRequest: {
			name: string;
			displayName: string;
			apiFormat: components['schemas']['ApiFormat'];
			baseUrl: string;
			models: components['schemas']['Model'][];
			apiKey?: string;
		};
		AddCredentialRequest: {
			name: string;
			authMethod: 'api-key' | 'env';
			apiKey?: string;
			secretEnv?: string;
			endpoint?: string;
			modelAllowlist?: string[];
			enabled?: boolean;
		};
		ProviderTest: {
			ok: boolean;
			latencyMs: number;
			model: string | null;
			reply?: string;
			error?: { code: string; message: string; status?: number };
		};
		EmbeddingChoice: { providerSlug: string; model: string; dimensions: number };
		EmbeddingSettings: {
			embedding: components['schemas']['EmbeddingChoice'] | null;
			candidates: { providerSlug: string; displayName: string; models: { id: string; dimensions?: number }[] }[];
			corpus: { documents: number; embedded: number; waiting: number };
		};
		SearchResults: {
			threads: { id: string; title: string | null; snippet?: string; messageId?: string; archived: boolean }[];
			documents: { id: string; title: string; snippet?: string }[];
		};
	};
}
