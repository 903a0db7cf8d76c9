/** The register of competences. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { CompetenceGrant } from '#lib/api/types.ts';
import { describeProblems } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';

describeProblems({
	COMPETENCE_ALREADY_GRANTED: m.problem_competence_granted,
	COMPETENCE_CAPABILITY_UNKNOWN: m.problem_competence_reserved,
	COMPETENCE_FORBIDDEN: m.problem_competence_forbidden,
	COMPETENCE_NOT_FOUND: m.problem_competence_gone
});

/** The capability of the platform that can be granted, whose name the server fixes. */
export const MODELS_API = 'tale:models.api';

export const competencesQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'competences'),
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<CompetenceGrant[]> =>
		(await send(api.GET('/api/app/governance/competences', { params: { query: { orgId } }, signal }))).grants
});

const reread = (orgId: string) => queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'competences') });

export async function grantCompetence(
	orgId: string,
	body: { userId: string; competence: string; evidence: string; expiresAt?: number }
): Promise<void> {
	await send(api.POST('/api/app/governance/competences', { params: { query: { orgId } }, body }));
	await reread(orgId);
}

export async function revokeCompetence(orgId: string, recordId: string): Promise<void> {
	const params = { query: { orgId }, path: { recordId } };
	try {
		await send(api.POST('/api/app/governance/competences/{recordId}/revoke', { params }));
	} finally {
		await reread(orgId);
	}
}

/** The name that people read. */
export function competenceName(competence: string): string {
	return competence === MODELS_API ? m.competences_models_api() : competence;
}
