import { expect, test, vi } from 'vitest';
import { ApiProblem } from '#lib/api/problem.ts';
import { forEach } from './bulk.svelte.ts';

vi.mock('$app/paths', () => ({ resolve: (path: string) => path }));

const IDS = ['a', 'b', 'c', 'd', 'e', 'f'];
const never = () => new AbortController().signal;
const limited = () => new ApiProblem(429, 'RATE_LIMITED', 'Too many requests', {}, null, 6);

test('what fails is told apart from what worked, with the first reason', async () => {
	const gone = new ApiProblem(404, 'DOCUMENT_NOT_FOUND', 'gone');
	const act = (id: string) => (id === 'b' || id === 'e' ? Promise.reject(gone) : Promise.resolve());
	const seen: number[] = [];
	const outcome = await forEach(IDS, act, never(), (done) => seen.push(done));
	expect(outcome.done.toSorted()).toEqual(['a', 'c', 'd', 'f']);
	expect(outcome.failed.toSorted()).toEqual(['b', 'e']);
	expect(outcome.reason).toBe(gone);
	expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
});

test('a server that asks for patience gets it, and nothing is lost', async () => {
	let refusals = 3;
	const pauses: number[] = [];
	const act = () => (refusals-- > 0 ? Promise.reject(limited()) : Promise.resolve());
	const outcome = await forEach(
		IDS,
		act,
		never(),
		() => {},
		(ms) => (pauses.push(ms), Promise.resolve())
	);
	expect(outcome.done.toSorted()).toEqual(IDS);
	expect(pauses).toEqual([6000, 6000, 6000]);
});

test('cancelling leaves the rest as it was', async () => {
	const abort = new AbortController();
	const asked: string[] = [];
	const act = (id: string) => {
		asked.push(id);
		if (asked.length === 4) abort.abort();
		return Promise.resolve();
	};
	const outcome = await forEach(IDS, act, abort.signal, () => {});
	expect(asked).toHaveLength(4);
	expect(outcome.failed).toEqual([]);
});
