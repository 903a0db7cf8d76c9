/** What the sign-in page says about a sign-in elsewhere that came back without one. */
import { m } from '#lib/paraglide/messages.js';

const ERRORS: Record<string, () => string> = {
	browser_binding: m.sso_error_browser_binding,
	flow_over: m.sso_error_flow_over,
	switched_off: m.sso_error_switched_off,
	provider_unreachable: m.sso_error_provider_unreachable,
	provider_refused: m.sso_error_provider_refused,
	not_believed: m.sso_error_not_believed,
	no_email: m.sso_error_no_email,
	email_unverified: m.sso_error_email_unverified,
	other_domain: m.sso_error_other_domain,
	no_seat: m.sso_error_no_seat,
	seat_disabled: m.sso_error_seat_disabled,
	linked_otherwise: m.sso_error_linked_otherwise,
	weak_encryption: m.sso_error_weak_encryption,
	too_many: m.sso_error_too_many
};

const RECOVERIES: Record<string, () => string> = {
	again: m.sso_recovery_again,
	ask_admin: m.sso_recovery_ask_admin,
	later: m.sso_recovery_later,
	other_way: m.sso_recovery_other_way
};

/** Codes of Entra for another step that the organization wants of the person. */
const MORE_FACTORS = ['AADSTS50076', 'AADSTS50079', 'AADSTS53003'];
/** The code of Entra for somebody who may not use the application. */
const NOT_ASSIGNED = 'AADSTS50105';

export interface Refusal {
	text: string;
	code: string | null;
	recovery: string | null;
	/** Whether another step at the provider would help. */
	mfa: boolean;
}

const own = (table: Record<string, () => string>, key: string) => (Object.hasOwn(table, key) ? table[key] : undefined);

/** What the address of the sign-in page says. A key that nobody knows is shown as it is. */
export function refusalOf(params: URLSearchParams): Refusal | null {
	const error = params.get('error');
	if (!error) return null;
	const code = params.get('error_code');
	const recovery = params.get('recovery') ?? '';
	const mfa = code !== null && MORE_FACTORS.includes(code);
	const text = mfa
		? m.sso_mfa()
		: code === NOT_ASSIGNED
			? m.sso_error_not_assigned()
			: (own(ERRORS, error)?.() ?? error.slice(0, 300));
	return {
		text,
		code: code?.slice(0, 64) ?? null,
		recovery: code === NOT_ASSIGNED ? null : (own(RECOVERIES, recovery)?.() ?? (recovery.slice(0, 300) || null)),
		mfa
	};
}
