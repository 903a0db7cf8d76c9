/** What happens when the server no longer knows this browser's session; every call reports here. */
import { atWall, enrollPath } from '#lib/factors/wall.ts';
import { paths } from '#lib/shell/paths.ts';
import type { ApiProblem } from './problem.ts';

type Listener = () => unknown;
let signedOut: Listener = () => {};
let leaving = false;

/** Registers what happens then, until its promise settles. Drafts stay in the browser; unsaved fields of a dialog do not. */
export function onSignedOut(listener: Listener): void {
	signedOut = listener;
}

/** Ends the session once: several requests are refused together, and the login page reads the session anew. */
async function leave(): Promise<void> {
	if (leaving) return;
	leaving = true;
	try {
		await signedOut();
	} finally {
		leaving = false;
	}
}

/** Looks at a refusal: one that says so ends the session here, too, or asks for a second factor or another password first. */
export function watchSession({ code }: ApiProblem): void {
	if (code === 'UNAUTHORIZED') void leave();
	else if (atWall(location.pathname)) return;
	else if (code === 'TWO_FACTOR_REQUIRED') location.assign(enrollPath(location.pathname));
	// The new load reads why, and leads there.
	else if (code === 'PASSWORD_CHANGE_REQUIRED') location.assign(paths.root());
}
