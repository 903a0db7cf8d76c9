/** A check of the whole chain, part by part, that can be stopped. */
import { type AuditBreak, type AuditVerification, verify } from './queries.ts';

export interface Outcome {
	/** The place after which the check began. */
	from: number;
	/** The last place that holds. */
	to: { sequence: number; hash: string };
	scrubbed: number;
	unsealed: number;
	found?: AuditBreak;
}

export class Check {
	running = $state(false);
	checked = $state(0);
	/** The share that is done, between 0 and 1. */
	share = $state(0);
	outcome: Outcome | undefined = $state.raw();
	error: unknown = $state.raw();
	#stop: AbortController | undefined;

	/** Runs from the oldest entry to the end; a check that runs already is left to it. */
	async run(orgId: string): Promise<void> {
		if (this.running) return;
		const stop = new AbortController();
		this.#stop = stop;
		this.running = true;
		this.checked = this.share = 0;
		this.outcome = this.error = undefined;
		let part: AuditVerification | undefined;
		let [from, scrubbed] = [0, 0];
		try {
			do {
				const next: AuditVerification = await verify(orgId, part?.to.sequence, stop.signal);
				if (!part) from = next.fromSequence;
				part = next;
				this.checked += part.checked;
				scrubbed += part.scrubbed;
				this.share = part.headSequence === 0 ? 1 : part.to.sequence / part.headSequence;
			} while (part.truncated && !stop.signal.aborted);
			if (!stop.signal.aborted) {
				this.outcome = { from, to: part.to, scrubbed, unsealed: part.unsealed, found: part.break };
			}
		} catch (error) {
			if (!stop.signal.aborted) this.error = error;
		} finally {
			if (this.#stop === stop) this.running = false;
		}
	}

	stop(): void {
		this.#stop?.abort();
		this.running = false;
	}
}
