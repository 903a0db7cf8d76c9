/** The organization's own bucket, and moving its files there. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { ObjectStorage, ObjectStorageForm, ObjectStorageMove } from '#lib/api/types.ts';
import { admitsStore } from '#lib/shell/site.ts';

/** While files are being moved the page asks again this often, beside the hints. */
const PROGRESS_MS = 1_000;

const at = (orgId: string) => ({ query: { orgId } });

export const storageQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'storage', 'connection'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<ObjectStorage> =>
		send(api.GET('/api/app/object-storage/connection', { params: at(orgId), signal }))
});

export const moveQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'storage', 'move'),
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<ObjectStorageMove | null> =>
		(await send(api.GET('/api/app/object-storage/migration', { params: at(orgId), signal }))).migration,
	refetchInterval: (query: { state: { data?: ObjectStorageMove | null } }) =>
		query.state.data?.state === 'running' ? PROGRESS_MS : (false as const)
});

const reread = (orgId: string) => queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'storage') });

export async function connectStorage(orgId: string, body: ObjectStorageForm): Promise<ObjectStorage> {
	const saved = await send(api.PUT('/api/app/object-storage/connection', { params: at(orgId), body }));
	await reread(orgId);
	return saved;
}

export async function disconnectStorage(orgId: string): Promise<void> {
	await send(api.DELETE('/api/app/object-storage/connection', { params: at(orgId) }));
	await reread(orgId);
}

export async function testStorage(orgId: string, body: ObjectStorageForm): Promise<void> {
	await send(api.POST('/api/app/object-storage/connection/test', { params: at(orgId), body }));
}

export async function startMove(orgId: string): Promise<void> {
	await send(api.POST('/api/app/object-storage/migration', { params: at(orgId) }));
	await reread(orgId);
}

/**
 * What this browser can do with the bucket: `cors`, it answers but does not admit pages of this site; `unreachable`, it
 * does not answer here; `refused`, it refuses the upload; `reload`, this page was loaded before the bucket was connected.
 */
export type BrowserOutcome = 'works' | 'cors' | 'unreachable' | 'refused' | 'reload';

/** Stores one byte in the bucket at `origin`, as uploads do, and removes it again. */
export async function tryFromBrowser(orgId: string, origin: string): Promise<BrowserOutcome> {
	if (!admitsStore(origin)) return 'reload';
	const test = await send(api.POST('/api/app/object-storage/connection/browser-test', { params: at(orgId) }));
	const quiet = { cache: 'no-store', credentials: 'omit' } as const;
	try {
		const answer = await fetch(test.url, { ...quiet, method: test.method, headers: test.headers, body: 'x' });
		return answer.ok ? 'works' : 'refused';
	} catch {
		// An answer that no script may read proves that the store is there, so its policy is what is missing.
		return await fetch(origin, { ...quiet, mode: 'no-cors' }).then(
			() => 'cors',
			() => 'unreachable'
		);
	} finally {
		const path = { id: test.id };
		// What stays behind is one byte under a name that nothing uses.
		await send(
			api.DELETE('/api/app/object-storage/connection/browser-test/{id}', { params: { ...at(orgId), path } })
		).catch(() => undefined);
	}
}
