/** Short reports at the top right: five seconds, errors until dismissed. */
import type { ApiProblem } from '#lib/api/problem.ts';
import { problemText } from '#lib/i18n/problems.ts';

const SHOWN_MS = 5_000;

export interface Toast {
	id: number;
	kind: 'success' | 'info' | 'error';
	text: string;
	/** A quiet second line. */
	detail?: string;
	/** Shown beside an error, to quote. */
	requestId?: string;
	action?: { label: string; run: () => void };
	/** Stays until dismissed. */
	lasting?: boolean;
	/** Words in place of the cross that dismisses it. */
	dismiss?: string;
}

class Toasts {
	list = $state<Toast[]>([]);
	#next = 1;
	#timers = new Map<number, ReturnType<typeof setTimeout>>();

	show(toast: Omit<Toast, 'id'>): number {
		const id = this.#next++;
		this.list.push({ ...toast, id });
		if (!toast.lasting && toast.kind !== 'error') this.resume(id);
		return id;
	}

	success(text: string, action?: Toast['action']): number {
		return this.show({ kind: 'success', text, action });
	}

	/** Reports a failed action: what did not happen, and why. */
	problem(text: string, problem: ApiProblem): number {
		return this.show({ kind: 'error', text, detail: problemText(problem), requestId: problem.requestId ?? undefined });
	}

	dismiss(id: number): void {
		this.pause(id);
		this.list = this.list.filter((toast) => toast.id !== id);
	}

	/** Holds a toast while the pointer or focus is on it. */
	pause(id: number): void {
		clearTimeout(this.#timers.get(id));
		this.#timers.delete(id);
	}

	/** Starts the five seconds (again). */
	resume(id: number): void {
		const toast = this.list.find((candidate) => candidate.id === id);
		if (!toast || toast.lasting || toast.kind === 'error') return;
		this.#timers.set(
			id,
			setTimeout(() => this.dismiss(id), SHOWN_MS)
		);
	}
}

export const toasts = new Toasts();
