/** What states and reasons of sandboxes are called. */
import type { CodeRun, Sandbox } from '#lib/api/types.ts';
import { formatNumber } from '#lib/i18n/format.ts';
import { m } from '#lib/paraglide/messages.js';

export const LANGUAGES = [
	{ value: 'python', label: 'Python' },
	{ value: 'shell', label: 'Shell' }
] as const;

/** Seconds, or minutes and seconds. */
export function duration(ms: number): string {
	if (ms < 10_000) return m.code_seconds({ count: formatNumber(ms / 1000, { maximumFractionDigits: 1 }) });
	const seconds = Math.round(ms / 1000);
	if (seconds < 60) return m.code_seconds({ count: formatNumber(seconds) });
	return m.code_minutes({ minutes: formatNumber(Math.floor(seconds / 60)), seconds: formatNumber(seconds % 60) });
}

/** Where a run stands, in one or two words. */
export function stateName(run: CodeRun): string {
	if (run.stopping) return m.code_state_stopping();
	switch (run.state) {
		case 'waiting':
			return m.code_state_waiting();
		case 'starting':
			return m.code_state_starting();
		case 'running':
			return m.code_state_running();
		case 'completed':
			return m.code_state_completed();
		case 'cancelled':
			return m.code_state_cancelled();
		case 'failed':
			return run.reason || run.exitCode === undefined
				? m.code_state_failed()
				: m.code_state_exit({ code: formatNumber(run.exitCode) });
	}
}

/** Why a run waits. */
export function waitText(reason: string | undefined | null): string {
	switch (reason) {
		case null:
		case undefined:
			return m.code_wait_turn();
		case 'session_quota':
			return m.code_wait_quota();
		case 'host_memory':
			return m.code_wait_memory();
		case 'host_cpu':
			return m.code_wait_cpu();
		case 'host_disk':
			return m.code_wait_disk();
		case 'runtime_image':
			return m.code_wait_image();
		case 'unreachable':
			return m.code_wait_unreachable();
		default:
			return m.code_wait_busy();
	}
}

/** How a run ended, as a sentence; none when its exit code says everything. */
export function endText(run: CodeRun): string | undefined {
	switch (run.reason) {
		case undefined:
			return undefined;
		case 'TIME_LIMIT':
			return m.code_end_time();
		case 'OUTPUT_LIMIT':
			return m.code_end_output();
		case 'OOM_KILLED':
		case 'SESSION_OOM':
			return m.code_end_memory();
		case 'EXEC_STALLED':
			return m.code_end_stalled();
		case 'SANDBOX_LOST':
		case 'SANDBOX_UNREACHABLE':
		case 'TIMEOUT':
			return m.code_end_lost();
		case 'OUTPUT_GAP':
		case 'REPLAY_UNAVAILABLE':
		case 'REPLAY_DISK_FULL':
			return m.code_end_gap();
		default:
			return m.code_end_start({ detail: run.message ?? run.reason });
	}
}

/** Whether the sandbox runs on the host. */
export function runtimeName(runtime: Sandbox['runtime']): string {
	switch (runtime) {
		case 'running':
			return m.sandboxes_runtime_running();
		case 'starting':
			return m.sandboxes_runtime_starting();
		case 'stopped':
			return m.sandboxes_runtime_stopped();
		case 'unknown':
			return m.sandboxes_runtime_unknown();
	}
}

/** Whether it holds a place under the organization's limits. */
export function allocationName(allocation: string): string {
	switch (allocation) {
		case 'creating':
		case 'active':
			return m.sandboxes_place_held();
		case 'destroying':
			return m.sandboxes_place_destroying();
		default:
			return m.sandboxes_place_released();
	}
}
