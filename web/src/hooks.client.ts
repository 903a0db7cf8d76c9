/**
 * Before the router starts, the address of the document is noted. What nobody caught is told to the deployment's
 * error reports, when there are any.
 */
import type { HandleClientError } from '@sveltejs/kit/hooks';
import { noteDocument } from '#lib/session/frame.ts';
import { written } from '#lib/shell/site.ts';

noteDocument();

function tell(error: unknown): void {
	if (!written('reports') || !(error instanceof Error)) return;
	// The part that writes reports is loaded with the first one.
	import('#lib/shell/reports.ts').then(
		({ tellFault }) => tellFault(error),
		() => {}
	);
}

addEventListener('error', (event) => tell(event.error));
addEventListener('unhandledrejection', (event) => tell(event.reason));

export const handleError: HandleClientError = ({ kind, error }) => {
	// What a page throws on purpose is part of it.
	if (kind !== 'unknown') return;
	// eslint-disable-next-line no-console -- SvelteKit's own default, for whoever has the console open
	console.error(error);
	tell(error);
};
