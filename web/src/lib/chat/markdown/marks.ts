/** How the renderer asks what a citation mark means and tells that one was pressed. */
import { createContext } from 'svelte';
import type { Citation } from '../answer.ts';

export interface Marks {
	/** What a number points at; nothing while that is unknown, and the mark stays text. */
	find(number: number): Citation | undefined;
	/** Whether the passage of this number is the one on screen. */
	pressed(number: number): boolean;
	/** Shows the passage in its document; `from` gets the focus back afterwards. */
	open(number: number, from: HTMLElement): void;
}

const [get, set] = createContext<Marks>();

/** Provides the citations of one answer to the Markdown inside. */
export const provideMarks = set;
export const useMarks = get;
