/** The members of an organization. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { Member, Role } from '#lib/api/types.ts';

export const membersQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'members'),
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Member[]> =>
		(await send(api.GET('/api/app/members', { params: { query: { orgId } }, signal }))).members
});

const params = (orgId: string, userId: string) => ({ query: { orgId }, path: { userId } });
const reread = (orgId: string) => queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'members') });

export interface NewMember {
	email: string;
	name?: string;
	role: Role;
	password?: string;
	/** Whether a new account replaces that password before anything else. */
	mustChangePassword?: boolean;
}

/** Adds somebody; `created` says whether the account is new, so that its password means something. */
export async function addMember(orgId: string, body: NewMember): Promise<{ created: boolean }> {
	const added = await send(api.POST('/api/app/members', { params: { query: { orgId } }, body }));
	await reread(orgId);
	return added;
}

export async function changeMember(
	orgId: string,
	userId: string,
	body: { role?: Role; name?: string; password?: string; mustChangePassword?: boolean }
): Promise<void> {
	await send(api.PATCH('/api/app/members/{userId}', { params: params(orgId, userId), body }));
	await reread(orgId);
}

export async function removeMember(orgId: string, userId: string): Promise<void> {
	await send(api.DELETE('/api/app/members/{userId}', { params: params(orgId, userId) }));
	await reread(orgId);
}

export async function transferOwnership(orgId: string, userId: string): Promise<void> {
	await send(api.POST('/api/app/members/{userId}/transfer-ownership', { params: params(orgId, userId) }));
	await Promise.all([
		reread(orgId),
		queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'permissions') }),
		queryClient.invalidateQueries({ queryKey: keys.session })
	]);
}
