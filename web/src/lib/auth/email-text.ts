import { m } from '#lib/paraglide/messages.js';
import { emailFault } from './email.ts';

/** What is wrong with an e-mail address, in words; null when nothing is. */
export function emailError(email: string): string | null {
	switch (emailFault(email)) {
		case 'empty':
			return m.auth_email_missing();
		case 'at':
			return m.auth_email_invalid();
		case 'ending':
			return m.auth_email_no_ending();
		default:
			return null;
	}
}
