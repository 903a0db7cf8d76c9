/** The drafts of the signed-in person, and which conversations have one, as reactive state. */
import { SvelteSet } from 'svelte/reactivity';
import { Drafts } from './drafts.ts';

class LiveDrafts extends Drafts {
	/** Conversations with unsent text. */
	readonly marked = new SvelteSet<string>();

	constructor(orgId: string, userId: string, storage: Storage | null) {
		super(orgId, userId, storage);
		this.#mark();
		this.subscribe(() => this.#mark());
		addEventListener('storage', (event) => {
			if (event.key === this.storageKey) this.reload();
		});
	}

	#mark(): void {
		const now = this.keys();
		for (const key of this.marked) if (!now.has(key)) this.marked.delete(key);
		for (const key of now) this.marked.add(key);
	}
}

let current: { key: string; drafts: LiveDrafts } | null = null;

export function draftsFor(orgId: string, userId: string): LiveDrafts {
	const key = `${orgId}/${userId}`;
	if (current?.key !== key) {
		let storage: Storage | null = null;
		try {
			storage = localStorage;
		} catch {
			// Blocked: drafts live until the tab closes.
		}
		current = { key, drafts: new LiveDrafts(orgId, userId, storage) };
	}
	return current.drafts;
}
