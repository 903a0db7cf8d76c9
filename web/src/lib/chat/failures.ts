/** What people read about a turn that failed, by its stable code. */
import { m } from '#lib/paraglide/messages.js';

export interface FailureHint {
	text: string;
	/** The provider settings are where this is put right. */
	settings: boolean;
}

/** The hint for a code; with the provider's or model's name where it is known and helps. */
export function failureHint(code: string, provider: string | null, model: string | null): FailureHint {
	const who = provider ?? m.chat_the_provider();
	const which = model ?? m.chat_the_model();
	const admin = (text: string): FailureHint => ({ text, settings: true });
	const person = (text: string): FailureHint => ({ text, settings: false });
	switch (code) {
		case 'missing_api_key':
			return admin(m.chat_failed_missing_api_key());
		case 'credit_exhausted':
			return admin(m.chat_failed_credit_exhausted({ provider: who }));
		case 'model_not_entitled':
			return admin(m.chat_failed_model_not_entitled({ provider: who, model: which }));
		case 'auth_error':
			return admin(m.chat_failed_auth_error({ provider: who }));
		case 'model_not_found':
			return admin(m.chat_failed_model_not_found({ provider: who, model: which }));
		case 'unsupported_parameter':
			return admin(m.chat_failed_unsupported_parameter({ model: which }));
		case 'output_cap_too_high':
			return admin(m.chat_failed_output_cap_too_high({ model: which }));
		case 'token_limit':
			return person(m.chat_failed_token_limit());
		case 'context_length':
			return person(m.chat_failed_context_length());
		case 'rate_limited':
			return person(m.chat_failed_rate_limited({ provider: who }));
		case 'content_filter':
			return person(m.chat_failed_content_filter({ provider: who }));
		case 'provider_unreachable':
			return admin(m.chat_failed_provider_unreachable({ provider: who }));
		case 'tool_failure':
			return person(m.chat_failed_tool_failure());
		case 'provider_error':
			return person(m.chat_failed_provider_error({ provider: who }));
		case 'usage_limit':
			return person(m.chat_failed_usage_limit());
		case 'interrupted':
			return person(m.chat_failed_interrupted());
		default:
			return person(m.chat_failed_generic());
	}
}

/** The line under a reply that ended without an answer, or before its end; nothing for a normal end. */
export function endingNotice(finishReason: string | null | undefined, hasText: boolean): string | null {
	switch (finishReason) {
		case 'length':
		case 'max_tokens':
			return hasText ? m.chat_end_length() : m.chat_end_length_empty();
		case 'content_filter':
		case 'content-filter':
			return m.chat_end_filter();
		default:
			return hasText ? null : m.chat_end_empty();
	}
}
