/**
 * Follows what operators change in the organization's configuration files, for pages that show it. Opened by those pages
 * only: a stream of its own is one connection more.
 */
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import { base } from '#lib/shell/paths.ts';
import { staleKeysOfFile } from './topics.ts';

/** Re-reads what shows a changed file until the returned function is called. */
export function followFiles(orgId: string): () => void {
	const source = new EventSource(`${base}/events/file?${new URLSearchParams({ orgId })}`);
	let before = false;
	source.addEventListener('hello', () => {
		// What changed while no stream was open was not told.
		if (before) void queryClient.invalidateQueries({ queryKey: keys.org(orgId) });
		before = true;
	});
	source.addEventListener('file', (event) => {
		const { path } = JSON.parse((event as MessageEvent<string>).data) as { path: string };
		for (const queryKey of staleKeysOfFile(orgId, path)) void queryClient.invalidateQueries({ queryKey });
	});
	source.addEventListener('resync', () => void queryClient.invalidateQueries({ queryKey: keys.org(orgId) }));
	return () => source.close();
}
