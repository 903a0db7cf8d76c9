/** Something to look at: members, a key, the demo model, a subscription, three documents and a question about them. */
import type { APIRequestContext, BrowserContext } from '@playwright/test';
import { baseUrl } from './app.ts';

const DOCUMENTS = [
	[
		'Procedure 7.6 Calibration of measuring equipment.md',
		'# Procedure 7.6\n\nSensors of the FB-200 series are recalibrated after twelve months of use.\n\nThe service team keeps the certificates for ten years. Equipment without a valid calibration is locked and marked red.\n'
	],
	[
		'Supplier agreement Keller Optik.md',
		'# Framework agreement FA-2023-014\n\n## 11 Term and notice\n\n11.2 The agreement extends by a year unless one party gives notice 90 days before its end.\n\n11.3 It ends on 1 March 2026 at the earliest.\n'
	],
	['Opening hours.txt', 'The Leeds warehouse accepts deliveries from 7:30 to 15:00, Monday to Friday.\n']
] as const;

interface Ids {
	threadId?: string;
	documentId?: string;
}

/** Adds what is missing; can run again on the same server. */
export async function seed(context: BrowserContext, orgId: string): Promise<Ids> {
	const api = doors(context.request, orgId);
	const providers = (await api.get('providers')).providers as { kind: string; subscriptions: unknown[] }[];
	if (!providers.some(({ kind }) => kind === 'demo')) await api.post('providers/demo');
	if (!providers.some(({ subscriptions }) => subscriptions.length > 0)) {
		await api.post('providers/anthropic/subscriptions', {
			name: 'Team plan',
			brokerSecret: 'broker-secret-0123456789',
			broker: {
				endpoint: 'https://tokens.fairbridge.example/anthropic',
				auth: { method: 'bearer' },
				responseMapping: { tokensPath: '$.tokens', tokenField: 'token' },
				targetEnvVar: 'CLAUDE_CODE_OAUTH_TOKEN',
				selection: 'round-robin'
			}
		});
	}
	await people(api);
	const documentId = await documents(api, context.request);
	const threadId = await question(api);
	return { threadId, documentId };
}

type Json = Record<string, unknown>;
interface Doors {
	get: (path: string) => Promise<Json>;
	post: (path: string, data?: Json) => Promise<Json>;
	patch: (path: string, data: Json) => Promise<Json>;
}

function doors(request: APIRequestContext, orgId: string): Doors {
	const at = (path: string) => `${baseUrl()}/api/app/${path}${path.includes('?') ? '&' : '?'}orgId=${orgId}`;
	const read = async (answer: Awaited<ReturnType<APIRequestContext['get']>>) => {
		if (!answer.ok()) throw new Error(`${answer.url()}: ${answer.status()} ${await answer.text()}`);
		const body = await answer.text();
		return (body ? JSON.parse(body) : {}) as Json;
	};
	return {
		get: async (path) => read(await request.get(at(path))),
		post: async (path, data) => read(await request.post(at(path), { data, headers: { Origin: baseUrl() } })),
		patch: async (path, data) => read(await request.patch(at(path), { data, headers: { Origin: baseUrl() } }))
	};
}

async function people(api: Doors): Promise<void> {
	const members = (await api.get('members')).members as { email: string }[];
	for (const [name, email, role] of [
		['Tom Okafor', 'tom.okafor@fairbridge.example', 'admin'],
		['Hannah Köhler', 'h.koehler@fairbridge.example', 'developer'],
		['Ruth Vogt-Österreicher', 'ruth.vogt-oesterreicher@fairbridge-instruments.example', 'member']
	] as const) {
		if (members.some((member) => member.email === email)) continue;
		await api.post('members', { name, email, role, password: 'Harbour-lantern-42' });
	}
	const keys = (await api.get('api-keys')).keys as unknown[];
	if (keys.length === 0) await api.post('api-keys', { name: 'Weekly report', expiresInDays: 90 });
}

/** Adds documents by file name and text, and waits until they are searchable. */
export async function addDocuments(
	context: BrowserContext,
	orgId: string,
	files: Record<string, string>
): Promise<void> {
	await upload(doors(context.request, orgId), context.request, Object.entries(files));
}

/** Asks in a new chat and waits for the answer; the chat's id. */
export async function ask(context: BrowserContext, orgId: string, content: string, title: string): Promise<string> {
	const api = doors(context.request, orgId);
	const threadId = await answered(api, content);
	await api.patch(`chat/threads/${threadId}`, { title });
	return threadId;
}

async function documents(api: Doors, request: APIRequestContext): Promise<string | undefined> {
	const listed = (await api.get('documents')).page as { id: string; title: string }[];
	const missing = DOCUMENTS.filter(([name]) => !listed.some(({ title }) => name.startsWith(title)));
	const page = await upload(api, request, missing);
	return page.find(({ title }) => title.includes('Procedure'))?.id;
}

async function upload(
	api: Doors,
	request: APIRequestContext,
	files: readonly (readonly [string, string])[]
): Promise<{ id: string; title: string }[]> {
	for (const [fileName, text] of files) {
		const contentType = fileName.endsWith('.md') ? 'text/markdown' : 'text/plain';
		const size = Buffer.byteLength(text);
		const slot = await api.post('uploads', { fileName, contentType, size });
		const put = await request.fetch(String(slot.url), {
			method: String(slot.method),
			headers: slot.headers as Record<string, string>,
			data: Buffer.from(text)
		});
		if (!put.ok()) throw new Error(`upload of ${fileName}: ${put.status()} ${await put.text()}`);
		await api.post('documents', { fileId: slot.fileId as string });
	}
	const page = (await waitFor(
		() => api.get('documents'),
		({ page }) =>
			(page as { indexing: { status: string } }[]).every(
				({ indexing }) => !['pending', 'queued', 'running'].includes(indexing.status)
			)
	)) as { page: { id: string; title: string }[] };
	return page.page;
}

async function question(api: Doors): Promise<string | undefined> {
	const { page } = (await api.get('chat/threads')) as { page: { id: string }[] };
	return page[0]?.id ?? (await answered(api, 'How often are FB-200 sensors recalibrated?'));
}

async function answered(api: Doors, content: string): Promise<string> {
	const sent = await api.post('chat/threads/new/messages', {
		content,
		model: 'auto'
	});
	const threadId = String(sent.threadId);
	await waitFor(
		() => api.get(`chat/threads/${threadId}/messages`),
		({ messages }) =>
			(messages as { role: string; status: string }[]).some(
				({ role, status }) => role === 'assistant' && !['queued', 'streaming', 'pending'].includes(status)
			)
	);
	return threadId;
}

async function waitFor(read: () => Promise<Json>, done: (value: Json) => boolean): Promise<Json> {
	const until = performance.now() + 60_000;
	for (;;) {
		const value = await read();
		if (done(value)) return value;
		if (performance.now() > until) throw new Error(`never settled: ${JSON.stringify(value).slice(0, 500)}`);
		await new Promise((next) => setTimeout(next, 250));
	}
}
