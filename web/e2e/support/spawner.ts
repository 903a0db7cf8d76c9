/**
 * A spawner of sandboxes on this machine without containers: every program prints `hello from <language>` and ends, or
 * waits until it is stopped when it says `sleep`. What it is asked is not judged; other tests do that.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Exec {
	ended?: () => void;
}

async function body(request: IncomingMessage): Promise<Record<string, unknown>> {
	let text = '';
	for await (const chunk of request) text += String(chunk);
	return JSON.parse(text || '{}') as Record<string, unknown>;
}

function json(response: ServerResponse, status: number, value: unknown): void {
	response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

const event = (name: string, data: unknown) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const result = (status: string, exitCode: number, errorCode?: string) =>
	event('result', {
		status,
		exitCode,
		durationMs: 1,
		stdoutBase64: '',
		stderrBase64: '',
		truncated: { stdout: false, stderr: false },
		errorCode
	});

function play(response: ServerResponse, command: string[], exec: Exec): void {
	const words = `hello from ${command[0]?.startsWith('python') ? 'python' : 'shell'}\n`;
	response.writeHead(200, { 'content-type': 'text/event-stream' });
	response.write(event('phase', { phase: 'running' }));
	response.write(event('stdout', { seq: 2, b64: Buffer.from(words).toString('base64') }));
	if (command.at(-1)?.includes('sleep')) exec.ended = () => response.end(result('cancelled', 137, 'CANCELLED'));
	else response.end(result('completed', 0));
}

/** Starts it. */
export async function startSpawner(): Promise<{ url: string; stop: () => void }> {
	const sessions = new Set<string>();
	/** Those that work holds; the others are asleep. */
	const held = new Set<string>();
	const execs = new Map<string, Exec>();
	const server = createServer(async (request, response) => {
		const at = new URL(request.url ?? '/', 'http://spawner');
		const [, , kind, session = '', verb, exec = '', act] = at.pathname.split('/');
		const asked = await body(request);
		if (kind === 'limits') return json(response, 200, { maxSessions: 8 });
		if (kind === 'workspaces') return json(response, 200, { backend: 'docker', workspaces: [], organizations: [] });
		if (kind === 'capacity') {
			return json(response, 200, {
				status: 'available',
				observedAt: Date.now(),
				backend: 'docker',
				scope: 'host',
				sessions: {
					running: sessions.size,
					starting: 0,
					limit: 8,
					organizationRunning: sessions.size,
					organizationStarting: 0,
					organizationLimit: 8
				},
				resources: { cpu: { totalCores: 4, usedCores: 1.5 }, memory: { totalBytes: 16e9, usedBytes: null } },
				runtimeSessions: [...sessions].map((sessionId) => ({
					sessionId,
					state: held.has(sessionId) ? 'running' : 'stopped'
				}))
			});
		}
		if (kind === 'sessions' && !session) {
			sessions.add(String(asked.sessionId));
			held.add(String(asked.sessionId));
			return json(response, 201, { session: {} });
		}
		if (!sessions.has(session)) return json(response, 404, { error: 'not_found' });
		if (verb === 'acquire') held.add(session);
		if (verb === 'acquire' || (verb === 'release' && request.method === 'GET'))
			return json(response, 200, { generation: 'g' });
		if (verb === 'release') {
			held.delete(session);
			return json(response, 200, { released: true });
		}
		if (verb === 'files' && exec === 'content') return response.writeHead(200).end('kept');
		if (verb === 'files') {
			return json(response, 200, {
				entries: [{ name: 'report.csv', kind: 'file', size: 4, modifiedAtMs: Date.now() }]
			});
		}
		if (verb === 'exec' && !exec) {
			const made: Exec = {};
			execs.set(String(asked.execId), made);
			return play(response, asked.command as string[], made);
		}
		if (!execs.has(exec)) return json(response, 404, { error: 'gone' });
		if (act === 'cancel') {
			execs.get(exec)?.ended?.();
			return json(response, 200, { killed: true });
		}
		return json(response, 200, { state: 'running', execId: exec, startedAtMs: 1 });
	});
	await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
	const { port } = server.address() as AddressInfo;
	return { url: `http://127.0.0.1:${port}`, stop: () => void (server.close(), server.closeAllConnections()) };
}
