/** What turns recordings into text now, and what could. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import type { TranscriptionSettings } from '#lib/api/types.ts';

export const transcriptionQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'transcription'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<TranscriptionSettings> =>
		send(api.GET('/api/app/governance/transcription', { params: { query: { orgId } }, signal }))
});
