/** The query cache: the one place where server state lives in the browser. */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/svelte-query';
import { ApiProblem } from './problem.ts';

type Listener = () => void;
let signedOut: Listener = () => {};

/** Registers what happens when the server no longer knows this browser's session. */
export function onSignedOut(listener: Listener): void {
	signedOut = listener;
}

function watchSession(error: unknown): void {
	if (error instanceof ApiProblem && error.status === 401 && error.code !== 'INVALID_CREDENTIALS') signedOut();
}

export const queryClient = new QueryClient({
	queryCache: new QueryCache({ onError: watchSession }),
	mutationCache: new MutationCache({ onError: watchSession }),
	defaultOptions: {
		queries: {
			// Hints name what changed, so data stays fresh until then; a reconnect re-reads what is on screen.
			staleTime: 60_000,
			// A property that is first read after a result arrived (by a component loaded late) must not be stale.
			notifyOnChangeProps: 'all',
			networkMode: 'always',
			refetchOnWindowFocus: false,
			retry: (count, error) => count < 2 && error instanceof ApiProblem && (error.status === 0 || error.status >= 502),
			retryDelay: (attempt) => 400 * 2 ** attempt
		},
		mutations: { networkMode: 'always', retry: false }
	}
});
