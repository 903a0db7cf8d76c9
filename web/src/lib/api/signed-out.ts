/** What happens when the server no longer knows this browser's session; every call reports here. */
import type { ApiProblem } from './problem.ts';

type Listener = () => void;
let signedOut: Listener = () => {};

/** Registers what happens then. Drafts stay in the browser; unsaved fields of a dialog do not. */
export function onSignedOut(listener: Listener): void {
	signedOut = listener;
}

/** Looks at a refusal; one that says so ends the session here, too. */
export function watchSession(problem: ApiProblem): void {
	if (problem.status === 401 && problem.code !== 'INVALID_CREDENTIALS') signedOut();
}
