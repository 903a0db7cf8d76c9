/** Sandboxes of the organization, and one's own runs and files in one. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { toProblem } from '#lib/api/problem.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { CodeFile, CodeRun, CodeRunPage, Sandboxes } from '#lib/api/types.ts';
import { describeProblems } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';
import { base } from '#lib/shell/paths.ts';

/** Time between two looks at the host. */
const LOOK_MS = 15_000;

export type Language = CodeRun['language'];

describeProblems({
	SANDBOX_NOT_CONFIGURED: m.sandboxes_off_text,
	SANDBOX_ASLEEP: m.code_asleep_text,
	SANDBOX_CAPACITY_EXCEEDED: m.sandboxes_limits_too_many,
	SANDBOX_UNAVAILABLE: m.sandboxes_unavailable,
	QUEUE_FULL: m.code_line_full,
	CODE_RUN_NOT_FOUND: m.code_run_gone,
	FILE_NOT_FOUND: m.code_file_gone
});

export const sandboxesQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'sandboxes'),
	refetchInterval: LOOK_MS,
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<Sandboxes> =>
		send(api.GET('/api/app/sandboxes', { params: { query: { orgId } }, signal }))
});

export const runsQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'codeRuns', 'list'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<CodeRunPage> =>
		send(api.GET('/api/app/code/runs', { params: { query: { orgId, limit: 50 } }, signal }))
});

export const filesQuery = (orgId: string, path: string) => ({
	queryKey: keys.org(orgId, 'codeRuns', 'files', path),
	// A sandbox that is being started cannot say what is in it for a moment.
	retry: (count: number, error: Error) => count < 3 && toProblem(error).status === 503,
	queryFn: async ({ signal }: { signal: AbortSignal }): Promise<{ entries: CodeFile[]; truncated: boolean }> =>
		await send(api.GET('/api/app/code/files', { params: { query: path ? { orgId, path } : { orgId } }, signal }))
});

/** Where a file is saved from. */
export const fileHref = (orgId: string, path: string) =>
	`${base}/api/app/code/files/content?${new URLSearchParams({ orgId, path })}`;

/** A run with its whole program. */
export const readRun = (orgId: string, id: string): Promise<CodeRun> =>
	send(api.GET('/api/app/code/runs/{id}', { params: { path: { id }, query: { orgId } } }));

export async function run(orgId: string, language: Language, code: string): Promise<CodeRun> {
	const made = await send(api.POST('/api/app/code/runs', { params: { query: { orgId } }, body: { language, code } }));
	await queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'codeRuns', 'list') });
	return made;
}

export async function stopRun(orgId: string, id: string): Promise<void> {
	await send(api.POST('/api/app/code/runs/{id}/stop', { params: { path: { id }, query: { orgId } } }));
	await queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'codeRuns', 'list') });
}

/** Saves the limits, if nobody has since `version`; reads everything again either way. */
export async function saveLimits(orgId: string, value: Record<string, number>, version: number): Promise<void> {
	try {
		await send(
			api.PUT('/api/app/governance/policies/{key}', {
				params: { path: { key: 'sandbox_quota' }, query: { orgId } },
				// The contract leaves the fields of a policy open.
				body: { value: value as never, version }
			})
		);
	} finally {
		await rereadSandboxes(orgId);
	}
}

/** Reads the sandboxes again. */
export const rereadSandboxes = (orgId: string) =>
	queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'sandboxes') });

export async function stopSandbox(orgId: string, id: string): Promise<number> {
	const { cancelled } = await send(
		api.POST('/api/app/sandboxes/{id}/stop', { params: { path: { id }, query: { orgId } } })
	);
	await rereadSandboxes(orgId);
	return cancelled;
}

export async function deleteSandbox(orgId: string, id: string): Promise<void> {
	await send(api.DELETE('/api/app/sandboxes/{id}', { params: { path: { id }, query: { orgId } } }));
	await rereadSandboxes(orgId);
}
