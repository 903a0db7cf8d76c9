/** What travels on the live stream. */

/** One part of a message; the chat domain knows the kinds. */
export type LivePart = { type: string } & Record<string, unknown>;

export interface HintEvent {
	topic: string;
	id?: string;
}

/** The state of a running turn: sent when it starts and right after each connection. */
export interface TurnEvent {
	threadId: string;
	messageId: string;
	status: 'queued' | 'streaming';
	parts: LivePart[];
}

/** Text to append to `parts[index]`, which is created when it does not exist. */
export interface DeltaEvent {
	threadId: string;
	messageId: string;
	kind: 'text' | 'reasoning';
	index: number;
	text: string;
}

/** Replaces `parts[index]`. */
export interface PartEvent {
	threadId: string;
	messageId: string;
	index: number;
	part: LivePart;
}

/** The turn is over; its messages can be read from the server. */
export interface SettledEvent {
	threadId: string;
	messageId: string;
	status: string;
}

/** What a page that shows a thread wants to hear. All are called in the order the server sent them. */
export interface ThreadHandlers {
	turn?: (event: TurnEvent) => void;
	delta?: (event: DeltaEvent) => void;
	part?: (event: PartEvent) => void;
	settled?: (event: SettledEvent) => void;
	/** The stream is open (again). A `turn` follows when one is running; none means nothing runs. */
	connected?: () => void;
	/** The stream broke; it reconnects by itself. */
	disconnected?: () => void;
}
