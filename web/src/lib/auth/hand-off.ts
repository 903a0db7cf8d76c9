/**
 * When the sign-in page goes to the hand-off of a reverse proxy by itself. A hand-off that brings the visitor back
 * here, because the browser keeps no cookie, must not start again, and whoever logged out must be able to stay out.
 */
const KEY = 'tale.hand-off';
/** Written instead of a time by whoever logged out: only a click starts the next one. */
const HELD = 'held';
/** Time after which a hand-off that led nowhere may be tried again, in ms. */
const PAUSE_MS = 60_000;

/** Whether a value left by an earlier visit leaves room for a hand-off at `now` (ms). */
export function mayStart(left: string | null, now: number): boolean {
	if (left === null) return true;
	const at = Number(left);
	return Number.isFinite(at) && (now - at >= PAUSE_MS || at > now);
}

/** Notes that a hand-off starts now; false without storage, where a loop could not be noticed. */
export function noteHandOff(): boolean {
	return leave(String(Date.now()));
}

/** Whether the sign-in page may start one by itself. */
export function mayHandOff(): boolean {
	try {
		return mayStart(sessionStorage.getItem(KEY), Date.now());
	} catch {
		return false;
	}
}

/** Waits for a click from now on. */
export function holdHandOff(): void {
	leave(HELD);
}

function leave(value: string): boolean {
	try {
		sessionStorage.setItem(KEY, value);
		return true;
	} catch {
		return false;
	}
}
