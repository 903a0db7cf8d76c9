/** Why a connection can't be used, as sentences beside the fields they are about. */
import type { ApiProblem } from '#lib/api/problem.ts';
import { problemText } from '#lib/i18n/problems.ts';

/** What was wrong: a sentence for each field, and one for the whole form. */
export interface ConnectionFailure {
	fields: Record<string, string>;
	text: string | null;
}

/** The sentences of `sentences` for the fields that the server named, or null if it named none of them. */
export function fieldFailure(problem: ApiProblem, sentences: Record<string, () => string>): ConnectionFailure | null {
	const fields: Record<string, string> = {};
	const { issues } = problem.data;
	for (const issue of Array.isArray(issues) ? issues : []) {
		const text = sentences[String(issue?.path)];
		if (text) fields[String(issue.path)] = text();
	}
	return Object.keys(fields).length > 0 ? { fields, text: null } : null;
}

/** The problem's own sentence, beside one field. */
export function problemOf(field: string, problem: ApiProblem): ConnectionFailure {
	return { fields: { [field]: problemText(problem) }, text: null };
}
