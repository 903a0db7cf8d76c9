/**
 * Starts the real binary on its embedded defaults and a fresh data directory, unless `TALE_BASE_URL` names a server that
 * runs already. `TALE_BINARY` names the binary; by default the release build, else the debug build, of this checkout.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const READY_MS = 120_000;

function binary(): string {
	const target = resolve(import.meta.dirname, '../../../target');
	const places = [process.env.TALE_BINARY, join(target, 'release/tale'), join(target, 'debug/tale')];
	const found = places.find((place) => place && existsSync(place));
	if (!found) throw new Error('no binary to test: build one, or set TALE_BINARY or TALE_BASE_URL');
	return found;
}

export function freePort(): Promise<number> {
	return new Promise((done, failed) => {
		const server = createServer().once('error', failed);
		server.listen(0, '127.0.0.1', () => {
			const address = server.address();
			server.close(() => (address && typeof address === 'object' ? done(address.port) : failed(new Error('no port'))));
		});
	});
}

function ready(child: ChildProcess): Promise<string> {
	return new Promise((done, failed) => {
		const log: string[] = [];
		const timer = setTimeout(() => failed(new Error(`not ready in ${READY_MS} ms:\n${log.join('\n')}`)), READY_MS);
		for (const stream of [child.stdout, child.stderr]) {
			if (!stream) continue;
			createInterface({ input: stream }).on('line', (line) => {
				log.push(line);
				const found = /^ready (http\S+)/.exec(line);
				if (!found?.[1]) return;
				clearTimeout(timer);
				done(found[1]);
			});
		}
		child.once('exit', (code) => failed(new Error(`the server ended with ${code}:\n${log.join('\n')}`)));
	});
}

/** Starts a server, with `settings` in its environment; the result says where it is and how to end it. */
export async function startServer(
	settings: Record<string, string> = {}
): Promise<{ url: string; stop: () => Promise<void> }> {
	const data = mkdtempSync(join(tmpdir(), 'tale-e2e-'));
	const port = await freePort();
	const child = spawn(binary(), ['dev', '--port', String(port), '--data-dir', data, '--demo'], {
		stdio: ['ignore', 'pipe', 'pipe'],
		env: { ...process.env, TALE_ALLOW_PRIVATE_PROVIDER_HOSTS: '1', ...settings }
	});
	const url = await ready(child);
	const stop = async () => {
		const ended = new Promise((done) => child.once('exit', done));
		child.kill('SIGTERM');
		await ended;
		rmSync(data, { recursive: true, force: true });
	};
	return { url, stop };
}

/** Playwright's global set-up: the returned function is its tear-down. */
export default async function setUp(): Promise<(() => Promise<void>) | undefined> {
	if (process.env.TALE_BASE_URL) return undefined;
	const { url, stop } = await startServer();
	process.env.TALE_BASE_URL = url;
	process.env.TALE_E2E_PRIVATE_HOSTS = '1';
	return stop;
}
