/** Names of variables that keys are read from. Only these are ever read, so the form adds the beginning itself. */
export const KEY_VARIABLES = 'TALE_PROVIDER_KEY_';
export const BROKER_VARIABLES = 'TALE_TOKEN_SOURCE_';

/** The whole name of what was typed; nothing stays nothing. */
export function variable(prefix: typeof KEY_VARIABLES | typeof BROKER_VARIABLES, typed: string): string {
	const name = typed.trim();
	return name === '' || name.startsWith(prefix) ? name : `${prefix}${name}`;
}
