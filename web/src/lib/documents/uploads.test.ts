import { describe, expect, it } from 'vitest';
import { TransferError, type Ticket } from './transfer';
import { MAX_FILE_BYTES, UploadQueue, type UploadDoors } from './uploads.svelte';

const file = (name: string, size = 10) => {
	const made = new File(['x'], name);
	Object.defineProperty(made, 'size', { value: size });
	return made;
};

/** Doors whose transfers end when the test says so. */
function harness() {
	const open: { name: string; progress: (sent: number) => void; end: () => void; fail: (cause: unknown) => void }[] =
		[];
	const finished: string[] = [];
	const doors: UploadDoors<string> = {
		ticket: (f) => Promise.resolve({ fileId: f.name, url: 'u', method: 'PUT', headers: {} } satisfies Ticket),
		put: (_ticket, f, onProgress, signal) =>
			new Promise<void>((resolve, reject) => {
				open.push({ name: f.name, progress: onProgress, end: resolve, fail: reject });
				signal.addEventListener('abort', () => reject(new TransferError('aborted')));
			}),
		finish: (ticket) => {
			finished.push(ticket.fileId);
			return Promise.resolve(`document of ${ticket.fileId}`);
		},
		explain: (cause) => ({ code: cause instanceof TransferError ? cause.reason : 'other' })
	};
	let now = 0;
	const queue = new UploadQueue(doors, () => now);
	const settle = async () => {
		for (let turn = 0; turn < 10; turn++) await Promise.resolve();
	};
	return { queue, open, finished, settle, tick: (ms: number) => (now += ms) };
}

describe('UploadQueue', () => {
	it('sends four at a time, in order, and binds each', async () => {
		const { queue, open, finished, settle } = harness();
		queue.add(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => file(name)));
		await settle();
		expect(open.map((transfer) => transfer.name)).toEqual(['a', 'b', 'c', 'd']);
		open[1]!.end();
		await settle();
		expect(open.map((transfer) => transfer.name)).toEqual(['a', 'b', 'c', 'd', 'e']);
		for (const transfer of open) transfer.end();
		await settle();
		open.at(-1)!.end();
		await settle();
		expect(finished.toSorted()).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
		expect(queue.items.every((item) => item.phase === 'done' && item.share === 1)).toBe(true);
		expect(queue.items[0]!.result).toBe('document of a');
	});

	it('refuses a file over the limit without a request and goes on with the rest', async () => {
		const { queue, open, settle } = harness();
		const [large] = queue.add([file('large', MAX_FILE_BYTES + 1), file('exact', MAX_FILE_BYTES)]);
		await settle();
		expect(large).toMatchObject({ phase: 'failed', failure: { code: 'FILE_TOO_LARGE' } });
		expect(open.map((transfer) => transfer.name)).toEqual(['exact']);
		queue.retry(large!.id);
		expect(large!.phase).toBe('failed');
	});

	it('cancels a waiting file and a running one, and never binds them', async () => {
		const { queue, open, finished, settle } = harness();
		const items = queue.add(['a', 'b', 'c', 'd', 'e'].map((name) => file(name)));
		await settle();
		queue.cancel(items[4]!.id);
		queue.cancel(items[0]!.id);
		await settle();
		for (const transfer of open) transfer.end();
		await settle();
		expect(items.map((item) => item.phase)).toEqual(['cancelled', 'done', 'done', 'done', 'cancelled']);
		expect(finished).not.toContain('a');
	});

	it('fails with the reason and succeeds on retry', async () => {
		const { queue, open, settle } = harness();
		const [item] = queue.add([file('a')]);
		await settle();
		open[0]!.fail(new TransferError('network'));
		await settle();
		expect(item).toMatchObject({ phase: 'failed', failure: { code: 'network' } });
		queue.retry(item!.id);
		await settle();
		open[1]!.end();
		await settle();
		expect(item!.phase).toBe('done');
	});

	it('tells how much is left', async () => {
		const { queue, open, settle, tick } = harness();
		queue.add([file('a', 1000), file('b', 1000)]);
		await settle();
		open[0]!.progress(0);
		open[0]!.progress(100);
		tick(1000);
		open[0]!.progress(600);
		expect(queue.totals).toEqual({ sent: 600, size: 2000 });
		expect(queue.secondsLeft).toBe(3);
		queue.cancelAll();
		await settle();
		expect(queue.secondsLeft).toBeNull();
	});
});
