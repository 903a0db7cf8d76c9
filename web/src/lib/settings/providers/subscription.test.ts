import { expect, test } from 'vitest';
import type { Subscription } from '#lib/api/types.ts';
import {
	brokerOf,
	emptyForm,
	emptyTokenForm,
	fieldOf,
	formOf,
	missing,
	missingOfToken,
	pastedOf,
	tokenFormOf
} from './subscription.ts';

const runtime = {
	harness: 'claude-code',
	label: 'Claude Code',
	targetEnvVars: ['TOKEN', 'OLD'],
	methods: ['subscription-broker' as const],
	needsAccountId: false,
	needsModels: false
};

test('a broker that is opened and saved stays as it was', () => {
	const broker = {
		endpoint: 'https://broker.example/tokens?provider=anthropic',
		httpMethod: 'POST' as const,
		auth: { method: 'header' as const, headerName: 'X-Key', secretEnv: 'TALE_TOKEN_SOURCE_POOL' },
		responseMapping: { tokensPath: '$.a', tokenField: 't', statusField: 's', activeValue: 'on', expiresField: 'e' },
		targetEnvVar: 'OLD',
		selection: 'round-robin' as const,
		expirySkewMs: 1_500,
		timeoutMs: 250,
		maxResponseBytes: 2_048
	};
	expect(brokerOf(formOf(broker, ['m']), broker)).toEqual(broker);
});

test('a secret that is typed takes the place of a variable, and none is sent without a sign-in', () => {
	const form = { ...emptyForm(runtime), endpoint: ' https://b.example ', secretEnv: 'TALE_TOKEN_SOURCE_A' };
	expect(brokerOf(form).endpoint).toBe('https://b.example');
	expect(brokerOf(form).auth?.secretEnv).toBe('TALE_TOKEN_SOURCE_A');
	expect(brokerOf({ ...form, secret: 's' }).auth?.secretEnv).toBeUndefined();
	expect(brokerOf({ ...form, signIn: 'none' }).auth).toEqual({ method: 'none' });
});

test('what is missing is named at its field', () => {
	const errors = missing('n', emptyForm(runtime), { ...runtime, needsModels: true });
	expect(Object.keys(errors).filter((field) => errors[field as keyof typeof errors])).toEqual([
		'endpoint',
		'secret',
		'models'
	]);
	expect(fieldOf('modelAllowlist.3')).toBe('models');
	expect(fieldOf('broker.auth.secretEnv')).toBe('secretEnv');
	expect(fieldOf('elsewhere')).toBeNull();
});

test('a pasted token is sent when it is typed and stays otherwise', () => {
	const codex = { ...runtime, needsAccountId: true };
	const empty = emptyTokenForm(codex);
	const errors = missingOfToken('n', empty, codex);
	expect(errors.secret && errors.accountId).toBeTruthy();
	expect(pastedOf({ ...empty, token: ' t ', accountId: ' a ' })).toEqual({
		token: 't',
		targetEnvVar: 'TOKEN',
		accountId: 'a',
		modelAllowlist: []
	});
	const stored = { targetEnvVar: 'OLD', accountId: 'a', modelAllowlist: ['m'] } as Subscription;
	const opened = tokenFormOf(stored);
	expect(pastedOf(opened)).toEqual({ token: undefined, targetEnvVar: 'OLD', accountId: 'a', modelAllowlist: ['m'] });
	expect(Object.values(missingOfToken('n', opened, codex, stored)).some(Boolean)).toBe(false);
});
