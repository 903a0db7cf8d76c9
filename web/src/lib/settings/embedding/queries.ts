/** The embedding model: by whose vectors the organization's documents are found. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { EmbeddingSettings } from '#lib/api/types.ts';

/** While documents are being embedded the page asks again this often, beside the hints. */
const PROGRESS_MS = 3_000;

export const embeddingQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'embedding'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<EmbeddingSettings> =>
		send(api.GET('/api/app/knowledge/embedding', { params: { query: { orgId } }, signal })),
	refetchInterval: (query: { state: { data?: EmbeddingSettings } }) =>
		query.state.data?.embedding && query.state.data.corpus.waiting > 0 ? PROGRESS_MS : (false as const)
});

async function reread(orgId: string): Promise<void> {
	await Promise.all(
		['embedding', 'composer', 'documents'].map((topic) =>
			queryClient.invalidateQueries({ queryKey: keys.org(orgId, topic) })
		)
	);
}

/** Chooses a model; answers how many documents are embedded anew. */
export async function chooseEmbedding(
	orgId: string,
	body: { providerSlug: string; model: string; dimensions: number }
): Promise<number> {
	const { requeued } = await send(api.PUT('/api/app/knowledge/embedding', { params: { query: { orgId } }, body }));
	await reread(orgId);
	return requeued;
}

export async function removeEmbedding(orgId: string): Promise<void> {
	await send(api.DELETE('/api/app/knowledge/embedding', { params: { query: { orgId } } }));
	await reread(orgId);
}
