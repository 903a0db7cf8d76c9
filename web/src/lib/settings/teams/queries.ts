/** The teams of an organization. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { Team, TeamDeletion, TeamMember } from '#lib/api/types.ts';
import { describeProblems } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';

describeProblems({
	TEAM_NAME_TAKEN: m.problem_team_name_taken,
	TEAM_LIMIT: m.problem_team_limit,
	TEAM_LAST_MEMBER: m.problem_team_last_member,
	TEAM_MANAGED: m.problem_team_managed,
	TEAM_NOT_FOUND: m.problem_team_gone,
	USER_NOT_ORG_MEMBER: m.problem_team_outsider
});

export const teamsQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'teams'),
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Team[]> =>
		(await send(api.GET('/api/app/teams', { params: { query: { orgId } }, signal }))).teams
});

export const teamMembersQuery = (orgId: string, id: string) => ({
	queryKey: keys.org(orgId, 'teams', id, 'members'),
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<TeamMember[]> =>
		(await send(api.GET('/api/app/teams/{id}/members', { params: { query: { orgId }, path: { id } }, signal }))).members
});

/** What the deletion of a team would touch, looked up anew each time somebody is about to. */
export const teamDeletionQuery = (orgId: string, id: string) => ({
	queryKey: keys.org(orgId, 'teams', id, 'deletion'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<TeamDeletion> =>
		send(api.GET('/api/app/teams/{id}/deletion', { params: { query: { orgId }, path: { id } }, signal })),
	staleTime: 0
});

export interface TeamForm {
	name: string;
	description: string;
	userIds: readonly string[];
}

const reread = (orgId: string) => queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'teams') });

export async function createTeam(orgId: string, { name, description, userIds }: TeamForm): Promise<void> {
	const body = { name, description, userIds: [...userIds] };
	await send(api.POST('/api/app/teams', { params: { query: { orgId } }, body }));
	await reread(orgId);
}

/** Brings a team from what it was to what it shall be. Newcomers come first, so that it never is without anybody. */
export async function changeTeam(orgId: string, id: string, before: TeamForm, after: TeamForm): Promise<void> {
	const query = { orgId };
	const coming = after.userIds.filter((user) => !before.userIds.includes(user));
	const leaving = before.userIds.filter((user) => !after.userIds.includes(user));
	try {
		if (after.name !== before.name || after.description !== before.description) {
			const body = { name: after.name, description: after.description };
			await send(api.PATCH('/api/app/teams/{id}', { params: { query, path: { id } }, body }));
		}
		if (coming.length > 0) {
			await send(
				api.POST('/api/app/teams/{id}/members', { params: { query, path: { id } }, body: { userIds: coming } })
			);
		}
		for (const userId of leaving) {
			await send(api.DELETE('/api/app/teams/{id}/members/{userId}', { params: { query, path: { id, userId } } }));
		}
	} finally {
		await reread(orgId);
	}
}

export async function deleteTeam(orgId: string, id: string): Promise<void> {
	await send(api.DELETE('/api/app/teams/{id}', { params: { query: { orgId }, path: { id } } }));
	await reread(orgId);
}
