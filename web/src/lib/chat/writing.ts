/** What the two fields for a message, the composer and the one that edits, agree on. */

/** Whether a key press sends: Enter, but neither a line break nor the Enter that ends an input method's word. */
export function sends(event: KeyboardEvent): boolean {
	return event.key === 'Enter' && !event.shiftKey && !event.isComposing;
}
