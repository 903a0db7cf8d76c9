/** The sentence people read for a problem: chosen by its code, in their language. */
import type { ApiProblem } from '#lib/api/problem.ts';
import { m } from '#lib/paraglide/messages.js';

type Text = () => string;

const BY_CODE: Record<string, Text> = {
	NETWORK: m.problem_network,
	UNEXPECTED: m.problem_unexpected,
	ORIGIN_FORBIDDEN: m.problem_origin,
	INVALID_CREDENTIALS: m.problem_invalid_credentials,
	SIGN_IN_LOCKED: m.problem_sign_in_locked,
	PASSWORD_POLICY: m.problem_password_policy,
	SETUP_TOKEN_REQUIRED: m.problem_setup_token,
	SETUP_ALREADY_DONE: m.problem_setup_done,
	EMAIL_TAKEN: m.problem_email_taken,
	ORG_NAME_TAKEN: m.problem_org_name_taken,
	ORG_NAME_RESERVED: m.problem_org_name_reserved,
	ALREADY_MEMBER: m.problem_already_member,
	MEMBER_LAST_ADMIN: m.problem_last_admin,
	MEMBER_OWNER_ROLE_IMMUTABLE: m.problem_creator_role,
	MEMBER_CREATOR_ROLE_IMMUTABLE: m.problem_creator_role,
	MEMBER_ACCOUNT_SHARED: m.problem_account_shared,
	MEMBER_SELF_ROLE_FORBIDDEN: m.problem_own_role,
	PRIVATE_HOST_BLOCKED: m.problem_private_host,
	EXTRA_BODY_KEY_FORBIDDEN: m.problem_extra_body,
	INVALID_URL: m.problem_url,
	CREDENTIAL_ENDPOINT_INVALID: m.problem_url,
	PROVIDER_NAME_TAKEN: m.problem_provider_name_taken,
	PROVIDER_IN_USE: m.problem_in_use,
	CREDENTIAL_IN_USE: m.problem_in_use,
	CREDENTIAL_NAME_TAKEN: m.problem_credential_name_taken,
	CREDENTIAL_SECRET_INVALID: m.problem_credential_secret,
	CREDENTIAL_ENV_MISSING: m.problem_credential_env,
	EMBEDDING_UPSTREAM_ERROR: m.problem_embedding_upstream,
	EMBEDDING_CREDENTIAL_REJECTED: m.problem_embedding_rejected,
	EMBEDDING_WIDTH_CONFLICT: m.problem_embedding_width,
	EMBEDDING_PROVIDER_UNSUPPORTED: m.problem_embedding_unsupported,
	DATABASE_UNAVAILABLE: m.problem_database,
	KNOWLEDGE_UNAVAILABLE: m.problem_database,
	KNOWLEDGE_MISCONFIGURED: m.problem_knowledge_settings,
	KNOWLEDGE_SAME_DATABASE: m.problem_knowledge_same,
	KNOWLEDGE_CHECK_FAILED: m.problem_knowledge_check,
	OBJECT_STORE_UNAVAILABLE: m.problem_store,
	OBJECT_STORE_MISCONFIGURED: m.problem_store_settings,
	OBJECT_STORE_UNCONFIGURED: m.problem_store_none,
	OBJECT_STORE_NOT_CONNECTED: m.problem_store_not_connected,
	OBJECT_STORE_SAME_BUCKET: m.problem_store_same,
	OBJECT_STORE_CHECK_FAILED: m.problem_store_check,
	OBJECT_STORE_MOVE_RUNNING: m.problem_store_moving,
	CONFIG_VERSION_CONFLICT: m.problem_policy_conflict,
	POLICY_UNREADABLE: m.problem_policy_unreadable,
	CONFIG_NOT_WRITABLE: m.problem_config,
	ATTACHMENT_NOT_OWNED: m.problem_attachment_gone,
	ATTACHMENT_NOT_READY: m.problem_attachment_unread,
	CHAT_MODEL_UNKNOWN: m.problem_chat_model,
	CHAT_MODEL_AMBIGUOUS: m.problem_chat_model,
	CHAT_PROVIDER_UNKNOWN: m.problem_chat_model,
	CHAT_MODEL_NOT_ON_PROVIDER: m.problem_chat_model,
	CHAT_MODEL_FORBIDDEN: m.problem_model_forbidden,
	CHAT_MODEL_NO_VISION: m.problem_no_vision,
	DEFERRED_SEND_NOT_FOUND: m.problem_was_sent,
	QUEUE_FULL: m.problem_queue_full,
	TOO_MANY_ATTACHMENTS: m.problem_too_many_attachments,
	TRUSTED_KEY_LIMIT: m.problem_trusted_key_limit,
	FRAME_ORIGIN_LIMIT: m.problem_frame_origin_limit,
	BUDGET_EXCEEDED: m.problem_budget_exceeded,
	BUSY: m.problem_busy,
	DRAINING: m.problem_busy
};

function byStatus(status: number): Text {
	if (status === 400 || status === 422) return m.problem_invalid;
	if (status === 401) return m.problem_unauthorized;
	if (status === 403) return m.problem_forbidden;
	if (status === 404 || status === 410) return m.problem_not_found;
	if (status === 409 || status === 412) return m.problem_conflict;
	if (status === 413) return m.problem_too_large;
	if (status === 429) return m.problem_rate_limited;
	if (status >= 500) return m.problem_server;
	return m.problem_unexpected;
}

const EXTRA: Record<string, Text> = {};

/** Adds the sentences of a domain (chat, documents) for its own codes. Called when that domain is loaded. */
export function describeProblems(texts: Record<string, Text>): void {
	Object.assign(EXTRA, texts);
}

export function problemText(problem: ApiProblem): string {
	const { failed } = problem.data;
	if (problem.code === 'PASSWORD_POLICY' && Array.isArray(failed) && failed.includes('common')) {
		return m.problem_password_common();
	}
	return (EXTRA[problem.code] ?? BY_CODE[problem.code] ?? byStatus(problem.status))();
}

/** The sentence for a refusal that was stored; the server's own when there is none for its code. */
export function refusalText({ code, message }: { code: string; message: string }): string {
	return (EXTRA[code] ?? BY_CODE[code])?.() ?? message;
}
