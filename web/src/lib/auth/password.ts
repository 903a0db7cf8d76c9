/** The password rules as the page shows them while somebody types. The server decides in the end. */
import type { PasswordPolicy } from '#lib/api/types.ts';

export type PasswordRule = 'length' | 'lower' | 'upper' | 'digit' | 'special';

/** What the server asks for unless its policy says otherwise. */
export const DEFAULT_POLICY: PasswordPolicy = {
	minLength: 12,
	requireLower: true,
	requireUpper: true,
	requireDigit: true,
	requireSpecial: true
};

/** Each rule of the policy and whether the password meets it. Length counts characters, not bytes. */
export function judge(password: string, policy: PasswordPolicy): { rule: PasswordRule; met: boolean }[] {
	const rules: { rule: PasswordRule; met: boolean }[] = [
		{ rule: 'length', met: [...password].length >= policy.minLength }
	];
	if (policy.requireLower) rules.push({ rule: 'lower', met: /\p{Ll}/u.test(password) });
	if (policy.requireUpper) rules.push({ rule: 'upper', met: /\p{Lu}/u.test(password) });
	if (policy.requireDigit) rules.push({ rule: 'digit', met: /\p{Nd}/u.test(password) });
	if (policy.requireSpecial) rules.push({ rule: 'special', met: /[^\p{L}\p{N}\s]/u.test(password) });
	return rules;
}

export function meets(password: string, policy: PasswordPolicy): boolean {
	return judge(password, policy).every(({ met }) => met);
}
