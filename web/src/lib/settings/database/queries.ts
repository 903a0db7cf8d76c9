/** The organization's own knowledge database. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { KnowledgeDatabaseForm, KnowledgeDatabaseFound, KnowledgeDatabaseState } from '#lib/api/types.ts';

const at = (orgId: string) => ({ query: { orgId } });

export const databaseQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'storage', 'database'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<KnowledgeDatabaseState> =>
		send(api.GET('/api/app/knowledge/connection', { params: at(orgId), signal }))
});

const reread = (orgId: string) => queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'storage') });

export async function connectDatabase(orgId: string, body: KnowledgeDatabaseForm): Promise<void> {
	await send(api.PUT('/api/app/knowledge/connection', { params: at(orgId), body }));
	await reread(orgId);
}

export async function disconnectDatabase(orgId: string): Promise<void> {
	await send(api.DELETE('/api/app/knowledge/connection', { params: at(orgId) }));
	await reread(orgId);
}

export async function testDatabase(orgId: string, body: KnowledgeDatabaseForm): Promise<KnowledgeDatabaseFound> {
	return send(api.POST('/api/app/knowledge/connection/test', { params: at(orgId), body }));
}

/** Reads every file anew into the present database; how many are queued. */
export async function indexEverything(orgId: string): Promise<number> {
	return (await send(api.POST('/api/app/knowledge/connection/reindex', { params: at(orgId) }))).queued;
}
