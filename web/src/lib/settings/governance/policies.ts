/** Policies: what an organization's administrators lay down, as the pages read and write them. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';

/** Whom a rule is about. */
export interface Target {
	scope: 'user' | 'team' | 'role' | 'default' | 'org' | 'apiKey';
	/** The id of the person or the team, or the role. */
	scopeId?: string;
	apiKeyId?: string;
}

export interface AccessRule extends Target {
	allowedModels: string[];
	blockedModels: string[];
}

export interface ModelAccess {
	enabled: boolean;
	mode: 'allowlist' | 'blocklist';
	rules: AccessRule[];
	modelApi: { enabled: boolean };
}

export interface DefaultRule extends Target {
	providerName: string;
	modelId: string;
}

export interface DefaultModels {
	enabled: boolean;
	rules: DefaultRule[];
}

export type Period = 'daily' | 'weekly' | 'monthly';

export interface BudgetRule extends Target {
	period: Period;
	maxTokens?: number;
	maxCostCents?: number;
	maxRequests?: number;
	warningThresholdPercent?: number;
}

export interface Budgets {
	enabled: boolean;
	rules: BudgetRule[];
}

export interface LoginPolicy {
	enabled: boolean;
	maxAttemptsBeforeLockout: number;
	/** Milliseconds. */
	backoffSchedule: number[];
	/** Hops before this Tale whose word about the client's address is believed. */
	trustedProxies: string[];
}

export interface PasswordPolicy {
	minLength: number;
	requireUpper: boolean;
	requireLower: boolean;
	requireDigit: boolean;
	requireSpecial: boolean;
	/** After how many days a password is replaced; 0: never. */
	/** Absent: never. */
	rotationDays?: number;
}

export interface UploadPolicy {
	enabled: boolean;
	allowedExtensions: string[];
	blockedExtensions: string[];
	allowedMimeTypes: string[];
	maxFileSizeBytes: number;
	maxFileSizeLimits: { mimeTypePrefix: string; maxBytes: number }[];
	maxTotalVolumeBytesPerUser: number;
}

export interface SessionPolicy {
	enabled: boolean;
	idleTimeoutMinutes: number;
}

export interface FactorPolicy {
	enforced: boolean;
	gracePeriodDays: number;
	exemptSsoUsers: boolean;
}

export interface WorkspacesPolicy {
	enabled: boolean;
	unusedDays: number;
}

export interface RetentionPolicy {
	usageLedgerEnabled: boolean;
	usageLedgerDays: number;
	deletionGraceDays: number;
}

interface Values {
	model_access: ModelAccess;
	default_models: DefaultModels;
	budgets: Budgets;
	transcription_model: { providerSlug?: string; modelId?: string };
	model_sync: { autoSyncEnabled: boolean };
	login_policy: LoginPolicy;
	password_policy: PasswordPolicy;
	upload_policy: UploadPolicy;
	session_idle_timeout: SessionPolicy;
	two_factor_policy: FactorPolicy;
	retention_policy: RetentionPolicy;
	sandbox_quota: {
		maxSessionsPerOrg: number;
		maxWorkflowSessionsPerOrg: number;
		maxRenderSessionsPerOrg: number;
	};
	sandbox_workspaces: WorkspacesPolicy;
}
export type PolicyKey = keyof Values;

export interface Policy<K extends PolicyKey> {
	value: Values[K];
	version: number;
	/** Why the present document can't be read; a save repairs it. */
	unreadable?: string;
}

/** The fields that are to be set. */
export type PolicyChange<K extends PolicyKey> = { [F in keyof Values[K]]?: Values[K][F] | null };

export const policyQuery = <K extends PolicyKey>(orgId: string, key: K) => ({
	queryKey: keys.org(orgId, 'governance', key),
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Policy<K>> =>
		(await send(
			api.GET('/api/app/governance/policies/{key}', { params: { path: { key }, query: { orgId } }, signal })
		)) as unknown as Policy<K>
});

/**
 * Saves the fields that are named; the others stay as they are. With `version`, only if nobody has saved since. A field
 * that is `null` goes back to its default.
 */
export async function savePolicy<K extends PolicyKey>(
	orgId: string,
	key: K,
	value: PolicyChange<K>,
	version?: number
): Promise<void> {
	const saved = await send(
		api.PUT('/api/app/governance/policies/{key}', {
			params: { path: { key }, query: { orgId } },
			// The contract leaves the fields of a policy open.
			body: { value: value as never, version }
		})
	);
	queryClient.setQueryData(keys.org(orgId, 'governance', key), saved);
	await Promise.all(
		['composer', 'transcription', 'budget'].map((topic) =>
			queryClient.invalidateQueries({ queryKey: keys.org(orgId, topic) })
		)
	);
}

/** Reads a policy again, after somebody else saved it. */
export const rereadPolicy = (orgId: string, key: PolicyKey) =>
	queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'governance', key) });

/** Every chat model of the organization, whoever may use it. */
export const governedModelsQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'governance', 'models'),
	queryFn: async ({ signal }: { signal: AbortSignal }) =>
		(await send(api.GET('/api/app/governance/models', { params: { query: { orgId } }, signal }))).models
});

/** The API keys that rules can name, and those that they name although they do not work any more. */
export const keyNamesQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'governance', 'apiKeys'),
	queryFn: ({ signal }: { signal: AbortSignal }) =>
		send(api.GET('/api/app/governance/api-keys', { params: { query: { orgId } }, signal }))
});
