/** What people read when a second factor is refused. */
import type { ApiProblem } from '#lib/api/problem.ts';
import { describeProblems, problemText } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';

describeProblems({
	PASSKEY_CANCELLED: m.factor_cancelled,
	PASSKEY_THERE_ALREADY: m.factor_there_already,
	PASSKEY_ALREADY_REGISTERED: m.factor_there_already,
	PASSKEY_REFUSED: m.factor_problem_passkey,
	PASSKEY_INVALID: m.factor_problem_late,
	PASSKEY_LIMIT: m.factor_problem_limit,
	PASSKEY_UNAVAILABLE: m.factor_problem_elsewhere,
	SESSION_NOT_FRESH: m.factor_problem_fresh,
	TOTP_ALREADY_ENABLED: m.factor_problem_on,
	TOTP_NOT_ENABLED: m.factor_problem_late,
	TWO_FACTOR_CODE_INVALID: m.factor_problem_code,
	TWO_FACTOR_NOT_PENDING: m.factor_problem_late
});

export const factorProblem = (problem: ApiProblem): string => problemText(problem);
