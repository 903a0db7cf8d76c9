/** The query cache: the one place where server state lives in the browser. */
import { QueryClient } from '@tanstack/svelte-query';
import { ApiProblem } from './problem.ts';

export const queryClient = new QueryClient({
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
