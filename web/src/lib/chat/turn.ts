/**
 * The state of the turn that runs in the open chat, folded from the event stream.
 *
 * Pure: every event gives the next state. Events of another message than the running one are ignored,
 * a snapshot replaces everything, and deltas create the part they name, so that a reconnect in the
 * middle of a sentence ends in the same state as an unbroken stream.
 */
import type { MessageStatus, Part, ThreadEvent } from './types';

export interface Turn {
	threadId: string;
	messageId: string;
	/** `settled` until the stored messages have been read again. */
	phase: 'queued' | 'streaming' | 'settled';
	status: MessageStatus;
	parts: Part[];
}

/** The next state; the same object when the event changes nothing. */
export function applyEvent(turn: Turn | null, event: ThreadEvent): Turn | null {
	if (event.kind === 'turn') {
		return {
			threadId: event.threadId,
			messageId: event.messageId,
			phase: event.status,
			status: 'pending',
			parts: event.parts
		};
	}
	if (!turn || turn.messageId !== event.messageId || turn.phase === 'settled') return turn;

	switch (event.kind) {
		case 'delta': {
			const parts = turn.parts.slice();
			const before = parts[event.index];
			const text = before?.type === event.part ? before.text + event.text : event.text;
			fill(parts, event.index);
			parts[event.index] = { type: event.part, text };
			return { ...turn, phase: 'streaming', parts };
		}
		case 'part': {
			const parts = turn.parts.slice();
			fill(parts, event.index);
			parts[event.index] = event.value;
			return { ...turn, phase: 'streaming', parts };
		}
		case 'settled':
			return { ...turn, phase: 'settled', status: event.status };
	}
}

function fill(parts: Part[], index: number): void {
	while (parts.length < index) parts.push({ type: 'opaque' });
}
