/** The transcription model: what turns recordings into text. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { TranscriptionSettings } from '#lib/api/types.ts';

export const transcriptionQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'transcription'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<TranscriptionSettings> =>
		send(api.GET('/api/app/knowledge/transcription', { params: { query: { orgId } }, signal }))
});

/** Pins a model; nothing goes back to the automatic choice. */
export async function chooseTranscription(
	orgId: string,
	body: { providerSlug: string; model: string } | null
): Promise<void> {
	const params = { query: { orgId } };
	await send(
		body
			? api.PUT('/api/app/knowledge/transcription', { params, body })
			: api.DELETE('/api/app/knowledge/transcription', { params })
	);
	await Promise.all(
		['transcription', 'composer'].map((topic) => queryClient.invalidateQueries({ queryKey: keys.org(orgId, topic) }))
	);
}
