/** A model provider on this machine: lists two models, answers chats, embeddings and recordings, and refuses every key but one. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export const KEY = 'sk-right-000000000000';
export const REFUSAL = 'Incorrect API key provided. Ask the people in Leeds for another one.';
export const DIMENSIONS = 8;
/** What it hears in every recording. */
export const SPEECH = 'We agreed on Tuesday.';

async function drained(request: IncomingMessage): Promise<void> {
	for await (const chunk of request) void chunk;
}

async function body(request: IncomingMessage): Promise<Record<string, unknown>> {
	let text = '';
	for await (const chunk of request) text += String(chunk);
	return JSON.parse(text || '{}') as Record<string, unknown>;
}

function json(response: ServerResponse, status: number, value: unknown): void {
	response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

function chat(response: ServerResponse): void {
	const chunk = (delta: object, finish: string | null) =>
		`data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', model: 'leeds-chat', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
	response.writeHead(200, { 'content-type': 'text/event-stream' });
	response.write(chunk({ role: 'assistant', content: 'Hello from ' }, null));
	response.write(chunk({ content: 'Leeds.' }, 'stop'));
	response.end('data: [DONE]\n\n');
}

export interface Vendor {
	url: string;
	/** What it lists, in order; may change. */
	models: string[];
	/** The bodies of chats that it answered. */
	asked: Record<string, unknown>[];
	stop: () => void;
}

/** Starts it. */
export async function startVendor(): Promise<Vendor> {
	const models = ['leeds-chat', 'leeds-embedding'];
	const asked: Record<string, unknown>[] = [];
	const server = createServer(async (request, response) => {
		if (request.headers.authorization !== `Bearer ${KEY}`) {
			return json(response, 401, {
				error: { message: REFUSAL, type: 'invalid_request_error', code: 'invalid_api_key' }
			});
		}
		if (request.url?.endsWith('/audio/transcriptions')) {
			await drained(request);
			return json(response, 200, {
				text: SPEECH,
				duration: 2.5,
				segments: [{ id: 0, start: 0, end: 2.5, text: SPEECH }]
			});
		}
		const sent = request.method === 'POST' ? await body(request) : {};
		if (request.url?.endsWith('/models')) {
			const data = models.map((id) => ({ id, object: 'model', owned_by: 'leeds' }));
			json(response, 200, { object: 'list', data });
		} else if (request.url?.endsWith('/chat/completions')) {
			asked.push(sent);
			chat(response);
		} else if (request.url?.endsWith('/embeddings')) {
			const inputs = Array.isArray(sent.input) ? sent.input : [sent.input];
			const embedding = Array.from({ length: DIMENSIONS }, (_, index) => (index + 1) / DIMENSIONS);
			const data = inputs.map((_, index) => ({ object: 'embedding', index, embedding }));
			json(response, 200, { object: 'list', model: sent.model, data, usage: { prompt_tokens: 1, total_tokens: 1 } });
		} else json(response, 404, { error: { message: 'no such route' } });
	});
	await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
	const { port } = server.address() as AddressInfo;
	return {
		url: `http://127.0.0.1:${port}/v1`,
		models,
		asked,
		stop: () => {
			server.closeAllConnections();
			server.close();
		}
	};
}
