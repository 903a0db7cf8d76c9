/** Reports of this page to its own server, which sends them on: what nobody caught, and how long pages took. */
import { page } from '$app/state';
import { ApiProblem } from '#lib/api/problem.ts';
import { base } from './paths.ts';
import { template } from './template.ts';

/** A page that fails in a loop tells so a few times. */
const MOST = 10;

const told = new Set<string>();

function post(report: Record<string, unknown>): void {
	const body = JSON.stringify({ ...report, page: template(page.route.id) });
	fetch(`${base}/_reports`, { method: 'POST', body, keepalive: true, credentials: 'omit' }).catch(() => {});
}

/** Tells an error, once. What the server answered with a reason of its own is known there. */
export function tellFault(error: Error): void {
	if (error instanceof ApiProblem) return;
	const { name, message, stack = '' } = error;
	const mark = name + message + stack;
	if (told.size >= MOST || told.has(mark)) return;
	told.add(mark);
	post({ kind: 'error', name, message: message.slice(0, 4000), stack: stack.slice(0, 16_000) });
}

/** Tells that this page took `ms`. */
export function tellTime(first: boolean, ms: number): void {
	post({ kind: 'page', first, ms });
}
