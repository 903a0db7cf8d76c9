/** The forms of a subscription: a pasted token, or what a broker is asked and how its answer is read. */
import { toProblem } from '#lib/api/problem.ts';
import type { Broker, Subscription, SubscriptionRuntime } from '#lib/api/types.ts';
import { problemText } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';
import { BROKER_VARIABLES, variable } from './variable.ts';

export interface BrokerForm {
	endpoint: string;
	httpMethod: string;
	signIn: string;
	headerName: string;
	secret: string;
	secretEnv: string;
	tokensPath: string;
	tokenField: string;
	statusField: string;
	activeValue: string;
	expiresField: string;
	targetEnvVar: string;
	selection: string;
	expirySkew: string;
	timeout: string;
	models: string[];
}

export function emptyForm(runtime: SubscriptionRuntime): BrokerForm {
	return {
		endpoint: '',
		httpMethod: 'GET',
		signIn: 'bearer',
		headerName: '',
		secret: '',
		secretEnv: '',
		tokensPath: '$.tokens',
		tokenField: 'token',
		statusField: '',
		activeValue: '',
		expiresField: '',
		targetEnvVar: runtime.targetEnvVars[0] ?? '',
		selection: 'random',
		expirySkew: '300',
		timeout: '10',
		models: []
	};
}

export function formOf(broker: Broker, modelAllowlist: readonly string[]): BrokerForm {
	const { responseMapping: mapping, auth } = broker;
	return {
		endpoint: broker.endpoint,
		httpMethod: broker.httpMethod ?? 'GET',
		signIn: auth?.method ?? 'none',
		headerName: auth?.headerName ?? '',
		secret: '',
		secretEnv: auth?.secretEnv ?? '',
		tokensPath: mapping.tokensPath,
		tokenField: mapping.tokenField,
		statusField: mapping.statusField ?? '',
		activeValue: mapping.activeValue ?? '',
		expiresField: mapping.expiresField ?? '',
		targetEnvVar: broker.targetEnvVar,
		selection: broker.selection ?? 'random',
		expirySkew: String((broker.expirySkewMs ?? 300_000) / 1_000),
		timeout: String((broker.timeoutMs ?? 10_000) / 1_000),
		models: [...modelAllowlist]
	};
}

/** The broker as it is sent; what the form does not show stays as it was. */
export function brokerOf(form: BrokerForm, before?: Broker): Broker {
	const said = (text: string) => text.trim() || undefined;
	const signsIn = form.signIn !== 'none';
	return {
		endpoint: form.endpoint.trim(),
		httpMethod: form.httpMethod as Broker['httpMethod'],
		auth: {
			method: form.signIn as 'none' | 'bearer' | 'header',
			headerName: form.signIn === 'header' ? said(form.headerName) : undefined,
			secretEnv: signsIn && !form.secret.trim() ? said(variable(BROKER_VARIABLES, form.secretEnv)) : undefined
		},
		responseMapping: {
			tokensPath: form.tokensPath.trim(),
			tokenField: form.tokenField.trim(),
			statusField: said(form.statusField),
			activeValue: said(form.activeValue),
			expiresField: said(form.expiresField)
		},
		targetEnvVar: form.targetEnvVar,
		selection: form.selection as Broker['selection'],
		expirySkewMs: Math.round(Number(form.expirySkew) * 1_000),
		timeoutMs: Math.round(Number(form.timeout) * 1_000),
		maxResponseBytes: before?.maxResponseBytes
	};
}

export interface TokenForm {
	token: string;
	accountId: string;
	targetEnvVar: string;
	models: string[];
}

export const emptyTokenForm = (runtime: SubscriptionRuntime): TokenForm => ({
	token: '',
	accountId: '',
	targetEnvVar: runtime.targetEnvVars[0] ?? '',
	models: []
});

export const tokenFormOf = ({ accountId, targetEnvVar, modelAllowlist }: Subscription): TokenForm => ({
	token: '',
	accountId: accountId ?? '',
	targetEnvVar,
	models: [...modelAllowlist]
});

/** The pasted token as it is sent; one that is not typed anew stays. */
export const pastedOf = (form: TokenForm) => ({
	token: form.token.trim() || undefined,
	targetEnvVar: form.targetEnvVar,
	accountId: form.accountId.trim() || undefined,
	modelAllowlist: form.models
});

/** The field of the form that a refusal is about. */
export function fieldOf(path: string): keyof BrokerForm | 'accountId' | null {
	const fields: Record<string, keyof BrokerForm | 'accountId'> = {
		accountId: 'accountId',
		targetEnvVar: 'targetEnvVar',
		'broker.endpoint': 'endpoint',
		'broker.auth.headerName': 'headerName',
		'broker.auth.secretEnv': 'secretEnv',
		'broker.responseMapping.tokensPath': 'tokensPath',
		'broker.responseMapping.tokenField': 'tokenField',
		'broker.responseMapping.statusField': 'statusField',
		'broker.responseMapping.activeValue': 'activeValue',
		'broker.responseMapping.expiresField': 'expiresField',
		'broker.targetEnvVar': 'targetEnvVar',
		'broker.expirySkewMs': 'expirySkew',
		'broker.timeoutMs': 'timeout',
		modelAllowlist: 'models'
	};
	return fields[path.replace(/\.\d+$/, '')] ?? null;
}

export type SubscriptionErrors = Partial<Record<keyof BrokerForm | 'accountId' | 'name' | 'failure', string | null>>;

/** What has to be filled in before anything is sent. */
export function missing(
	name: string,
	form: BrokerForm,
	runtime: SubscriptionRuntime,
	before?: Subscription
): SubscriptionErrors {
	const signsIn = form.signIn !== 'none';
	const secret = form.secret.trim() || form.secretEnv.trim() || before?.masked;
	return {
		name: name.trim() ? null : m.setup_name_missing(),
		endpoint: form.endpoint.trim() ? null : m.problem_url(),
		headerName: form.signIn !== 'header' || form.headerName.trim() ? null : m.subscriptions_header_missing(),
		secret: !signsIn || secret ? null : m.subscriptions_secret_missing(),
		models: !runtime.needsModels || form.models.length > 0 ? null : m.providers_models_missing()
	};
}

/** The same of a pasted token. */
export function missingOfToken(
	name: string,
	form: TokenForm,
	runtime: SubscriptionRuntime,
	before?: Subscription
): SubscriptionErrors {
	return {
		name: name.trim() ? null : m.setup_name_missing(),
		secret: form.token.trim() || before ? null : m.subscriptions_token_missing(),
		accountId: !runtime.needsAccountId || form.accountId.trim() ? null : m.subscriptions_account_missing(),
		models: !runtime.needsModels || form.models.length > 0 ? null : m.providers_models_missing()
	};
}

/** A refusal at the fields that it is about. */
export function refusals(error: unknown): SubscriptionErrors {
	const problem = toProblem(error);
	const text = problemText(problem);
	if (problem.code === 'CREDENTIAL_NAME_TAKEN') return { name: text };
	if (problem.code === 'CREDENTIAL_SECRET_INVALID') return { secret: problem.message };
	if (['INVALID_URL', 'PRIVATE_HOST_BLOCKED'].includes(problem.code)) return { endpoint: text };
	const errors: SubscriptionErrors = {};
	const issues = (problem.data.issues ?? []) as { path: string; message: string }[];
	for (const { path, message } of issues) {
		const field = fieldOf(path);
		if (field) errors[field] = message;
	}
	return Object.keys(errors).length > 0 ? errors : { failure: text };
}
