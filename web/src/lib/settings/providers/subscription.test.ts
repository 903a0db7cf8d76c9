import { expect, test } from 'vitest';
import type { Subscription } from '#lib/api/types.ts';
import { brokerOf, emptyForm, fieldOf, formOf, missing } from './subscription.ts';

const runtime = { harness: 'claude-code', label: 'Claude Code', targetEnvVars: ['TOKEN', 'OLD'], needsModels: false };

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
	const subscription = { broker, modelAllowlist: ['m'] } as Subscription;
	expect(brokerOf(formOf(subscription), broker)).toEqual(broker);
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
