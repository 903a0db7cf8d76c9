/** Why a database can't be used, as a sentence, and what was found in one that can. */
import { toProblem } from '#lib/api/problem.ts';
import type { KnowledgeDatabaseFound } from '#lib/api/types.ts';
import { problemText } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';
import { fieldFailure, problemOf, type ConnectionFailure } from '../connection/failure.ts';

const FIELDS: Record<string, () => string> = {
	host: m.database_host_invalid,
	port: m.database_port_invalid,
	database: m.database_name_invalid,
	user: m.database_name_invalid,
	password: m.database_password_invalid
};

/** The field that a reason belongs to, if it is about one. */
const FIELD_OF: Record<string, string> = {
	host_refused: 'host',
	unresolved: 'host',
	database_missing: 'database',
	login_refused: 'password'
};

/** A sentence for a reason; `detail` is what the files, the network or the server said. */
export function troubleText(reason: string, detail: string): string {
	switch (reason) {
		case 'host_refused':
			return m.problem_private_host();
		case 'unresolved':
			return m.database_unresolved();
		case 'unreachable':
			return m.database_unreachable({ detail });
		case 'not_encrypted':
			return m.database_not_encrypted({ detail });
		case 'login_refused':
			return m.database_login_refused({ detail });
		case 'database_missing':
			return m.database_missing();
		case 'transaction_pooler':
			return m.database_pooler();
		case 'vector_missing':
			return m.database_vector_missing({ statement: 'CREATE EXTENSION vector;' });
		case 'vector_too_old':
			return m.database_vector_too_old({ statement: 'ALTER EXTENSION vector UPDATE;' });
		case 'not_allowed':
			return m.database_not_allowed({ statement: 'GRANT CREATE ON DATABASE … TO …;' });
		case 'not_prepared':
			return m.database_not_prepared({ detail });
		case 'settings':
			return m.database_settings({ detail });
		case 'opening':
			return m.database_opening();
		default:
			return m.database_refused({ detail });
	}
}

export function databaseFailure(error: unknown): ConnectionFailure {
	const problem = toProblem(error);
	const named = fieldFailure(problem, FIELDS);
	if (named) return named;
	if (problem.code === 'PRIVATE_HOST_BLOCKED') return problemOf('host', problem);
	if (problem.code === 'KNOWLEDGE_SAME_DATABASE') return problemOf('database', problem);
	if (problem.code === 'KNOWLEDGE_CHECK_FAILED') {
		const { reason, detail } = problem.data;
		const text = troubleText(String(reason), typeof detail === 'string' ? detail : '');
		const field = FIELD_OF[String(reason)];
		return field ? { fields: { [field]: text }, text: null } : { fields: {}, text };
	}
	return { fields: {}, text: problemText(problem) };
}

/** The server and the extensions, in one line. */
export function foundText({ serverVersion, vector, pgSearch }: KnowledgeDatabaseFound): string {
	const search = pgSearch ? m.database_search_there({ version: pgSearch }) : m.database_search_missing();
	return m.database_found({ server: serverVersion, vector: vector ?? '', search });
}
