/**
 * The ticked rows of a table. A range goes from the row ticked last to this one and takes this one's new state.
 *
 * ```ts
 * selection.pick(row.id, rows.map(({ id }) => id), event.shiftKey);
 * ```
 */
import { SvelteSet } from 'svelte/reactivity';

export class Selection {
	readonly ids = new SvelteSet<string>();
	#anchor: string | null = null;

	/** Ticks or unticks a row; `range` takes every row of `order` from the last one on along. */
	pick(id: string, order: readonly string[], range: boolean): void {
		const on = !this.ids.has(id);
		const from = range && this.#anchor !== null ? order.indexOf(this.#anchor) : -1;
		const to = order.indexOf(id);
		const rows = from < 0 || to < 0 ? [id] : order.slice(Math.min(from, to), Math.max(from, to) + 1);
		for (const row of rows) {
			if (on) this.ids.add(row);
			else this.ids.delete(row);
		}
		this.#anchor = id;
	}

	/** Takes a row along without moving where a range begins. */
	add(id: string): void {
		this.ids.add(id);
	}

	/** Ticks all of `order`, or none when all are ticked. */
	all(order: readonly string[]): void {
		if (order.every((id) => this.ids.has(id))) this.clear();
		else for (const id of order) this.ids.add(id);
	}

	/** Forgets rows that are no longer there. */
	keep(order: readonly string[]): void {
		const gone = [...this.ids].filter((id) => !order.includes(id));
		for (const id of gone) this.ids.delete(id);
	}

	clear(): void {
		this.ids.clear();
		this.#anchor = null;
	}
}
