import { expect, test } from 'vitest';
import { DEFAULT_POLICY, judge, meets } from './password.ts';

const unmet = (password: string, policy = DEFAULT_POLICY) =>
	judge(password, policy)
		.filter(({ met }) => !met)
		.map(({ rule }) => rule);

test('a password that meets every rule passes', () => expect(meets('Correct-horse-1', DEFAULT_POLICY)).toBe(true));
test('each missing rule is named', () => expect(unmet('correct-horse')).toEqual(['upper', 'digit']));
test('letters outside ASCII count as letters', () => expect(unmet('Überäußerst1x!')).toEqual([]));
test('length counts characters', () => expect(unmet('Aa1!𝒜𝒜𝒜𝒜𝒜𝒜𝒜')).toEqual(['length']));
test('a special sign is asked for only by policy', () => {
	expect(unmet('Correcthorse1')).toEqual(['special']);
	expect(unmet('Correcthorse1', { ...DEFAULT_POLICY, requireSpecial: false })).toEqual([]);
});
