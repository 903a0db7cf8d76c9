/**
 * Unsent text, one draft per conversation, kept in the browser so that it outlives reloads and outages.
 *
 * The key of a chat that has no id yet is `new`. Storage that is full, blocked or private leaves the
 * drafts in memory; nothing fails.
 */

/** What storage must do; `localStorage` in the browser. */
export type DraftStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export const NEW_CHAT = 'new';

/** The key of a sent message that is being written anew. */
export const editOf = (messageId: string): string => `edit:${messageId}`;

/** Chats whose drafts are kept; the oldest go first. */
const KEEP = 200;

export class Drafts {
	readonly #name: string;
	readonly #storage: DraftStorage | null;
	readonly #listeners = new Set<() => void>();
	#texts: Map<string, string>;

	constructor(orgId: string, userId: string, storage: DraftStorage | null) {
		this.#name = `tale.drafts.${orgId}.${userId}`;
		this.#storage = storage;
		this.#texts = this.#load();
	}

	#load(): Map<string, string> {
		try {
			const stored: unknown = JSON.parse(this.#storage?.getItem(this.#name) ?? '[]');
			if (!Array.isArray(stored)) return new Map();
			return new Map(
				stored.filter(
					(entry): entry is [string, string] =>
						Array.isArray(entry) && typeof entry[0] === 'string' && typeof entry[1] === 'string'
				)
			);
		} catch {
			return new Map();
		}
	}

	get(thread: string): string {
		return this.#texts.get(thread) ?? '';
	}

	/** Keeps `text` for the conversation; blank text forgets it. */
	set(thread: string, text: string): void {
		const had = this.#texts.has(thread);
		if (text.trim() === '') {
			if (!had) return;
			this.#texts.delete(thread);
		} else {
			if (this.#texts.get(thread) === text) return;
			this.#texts.delete(thread);
			this.#texts.set(thread, text);
			for (const oldest of this.#texts.keys()) {
				if (this.#texts.size <= KEEP) break;
				this.#texts.delete(oldest);
			}
		}
		this.#save();
		if (had !== this.#texts.has(thread)) for (const listener of this.#listeners) listener();
	}

	has(thread: string): boolean {
		return this.#texts.has(thread);
	}

	/** Conversations with unsent text. */
	keys(): Set<string> {
		return new Set(this.#texts.keys());
	}

	/** Called when a conversation gains or loses its draft; returns the way to stop. */
	subscribe(listener: () => void): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	/** Another tab changed the drafts. */
	reload(): void {
		this.#texts = this.#load();
		for (const listener of this.#listeners) listener();
	}

	/** The storage key, to tell our own `storage` events from others. */
	get storageKey(): string {
		return this.#name;
	}

	#save(): void {
		try {
			if (this.#texts.size === 0) this.#storage?.removeItem(this.#name);
			else this.#storage?.setItem(this.#name, JSON.stringify([...this.#texts]));
		} catch {
			// Full or refused: the draft lives in memory until the tab closes.
		}
	}
}
