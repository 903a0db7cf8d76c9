/** A bucket that is not the deployment's: SeaweedFS, which `scripts/setup test` fetches. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as forward, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freePort } from './server.ts';

const PROGRAM = resolve(import.meta.dirname, '../../../.cache/tools/weed/bin/weed');
export const BUCKET = { name: 'fairbridge', accessKey: 'fairbridge', secretKey: 'harbour-lantern' };

export const seaweedThere = (): boolean => existsSync(PROGRAM);

export interface Seaweed {
	/** Admits no page of any site. */
	closed: string;
	/** The same store, with a CORS policy that admits every page. */
	open: string;
	stop: () => Promise<void>;
}

/** Starts the store and makes the bucket. */
export async function startSeaweed(): Promise<Seaweed> {
	const folder = mkdtempSync(join(tmpdir(), 'tale-weed-'));
	const identities = join(folder, 'identities.json');
	const credentials = [{ accessKey: BUCKET.accessKey, secretKey: BUCKET.secretKey }];
	writeFileSync(
		identities,
		JSON.stringify({ identities: [{ name: 'admin', credentials, actions: ['Admin', 'Read', 'Write', 'List'] }] })
	);
	const parts = ['master', 'volume', 'filer', 's3'];
	const ports: string[] = [];
	const numbers = new Map<string, number>();
	for (const part of parts) {
		for (const kind of ['port', 'port.grpc']) {
			const number = await freePort();
			numbers.set(`${part}.${kind}`, number);
			ports.push(`-${part}.${kind}=${number}`);
		}
	}
	const child = spawn(
		PROGRAM,
		[
			'server',
			`-dir=${folder}`,
			'-ip=127.0.0.1',
			'-ip.bind=127.0.0.1',
			'-master.telemetry=false',
			'-master.volumeSizeLimitMB=64',
			'-volume.max=16',
			'-filer',
			'-s3',
			'-s3.port.iceberg=0',
			'-s3.port.lance=0',
			'-s3.allowedOrigins=https://elsewhere.example',
			`-s3.config=${identities}`,
			...ports
		],
		{ stdio: 'ignore' }
	);
	const closed = `http://127.0.0.1:${numbers.get('s3.port')}`;
	const filer = `http://127.0.0.1:${numbers.get('filer.port')}`;
	// A bucket is a folder of its filer; the first object marks the end of its start.
	const deadline = Date.now() + 60_000;
	const made = async () => {
		const body = new FormData();
		body.append('file', new Blob(['x']), 'probe');
		const answer = await fetch(`${filer}/buckets/${BUCKET.name}/probe`, { method: 'POST', body }).catch(() => null);
		return !!answer?.ok && (await fetch(closed).catch(() => null)) !== null;
	};
	while (!(await made())) {
		if (Date.now() > deadline) throw new Error('SeaweedFS does not start');
		await new Promise((later) => setTimeout(later, 100));
	}
	const door = await openDoor(closed);
	const address = door.address();
	const stop = async () => {
		const ended = new Promise((done) => child.once('exit', done));
		door.close();
		door.closeAllConnections();
		child.kill('SIGKILL');
		await ended;
		rmSync(folder, { recursive: true, force: true });
	};
	return { closed, open: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`, stop };
}

/** Passes requests on unchanged and answers as a bucket with a CORS policy does. */
function openDoor(target: string): Promise<Server> {
	const { hostname, port } = new URL(target);
	const server = createServer((request, answer) => {
		const origin = request.headers.origin;
		const policy = origin
			? {
					'access-control-allow-origin': origin,
					'access-control-allow-methods': 'GET, PUT, HEAD',
					'access-control-allow-headers': request.headers['access-control-request-headers'] ?? ''
				}
			: {};
		if (request.method === 'OPTIONS') return void answer.writeHead(204, policy).end();
		const headers = { ...request.headers };
		delete headers.origin;
		const onward = forward({ hostname, port, method: request.method, path: request.url, headers }, (reply) => {
			answer.writeHead(reply.statusCode ?? 502, { ...reply.headers, ...policy });
			reply.pipe(answer);
		});
		onward.on('error', () => answer.writeHead(502, policy).end());
		request.pipe(onward);
	});
	return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));
}
