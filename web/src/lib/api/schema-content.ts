/** Contract of chat and documents, in openapi-typescript's layout. */
import type { Accepted, Composer, Effort, Message, Thread } from '../chat/types.ts';
import type { Document, DocumentPage, ExtractedText, Passage, UploadTicket } from '../documents/types.ts';

interface NoParameters {
	query?: never;
	header?: never;
	path?: never;
	cookie?: never;
}

interface Org {
	orgId: string;
}

/** Parameters of an organization route: its query (always with `orgId`) and its path. */
type In<Path = undefined, Query = unknown> = {
	query: Org & Query;
	header?: never;
	cookie?: never;
} & (Path extends undefined ? { path?: never } : { path: Path });

interface Op<Parameters, Body, Status extends number, Result> {
	parameters: Parameters;
	requestBody: Body extends undefined ? undefined : { content: { 'application/json': Body } };
	responses: { [code in Status]: { headers: Record<string, unknown>; content: { 'application/json': Result } } };
}

type Get<Parameters, Result> = Omit<Op<Parameters, undefined, 200, Result>, 'requestBody'> & { requestBody?: never };
/** A call without a body. */
type Call<Parameters, Status extends number, Result> = Omit<
	Op<Parameters, undefined, Status, Result>,
	'requestBody'
> & {
	requestBody?: never;
};

type Methods = 'get' | 'put' | 'post' | 'delete' | 'options' | 'head' | 'patch' | 'trace';
type Path<Operations> = { parameters: NoParameters } & Operations & {
		[method in Exclude<Methods, keyof Operations>]?: never;
	};

interface Id {
	id: string;
}

interface MessagePath extends Id {
	mid: string;
}

/** What a send carries; the same for a first message, an edit and a retry. */
export interface SendRequest {
	content: string;
	model: string;
	providerSlug?: string | null;
	reasoningEffort?: Effort | null;
	attachments?: string[];
	locale?: string;
}

export interface ThreadPage {
	page: Thread[];
	isDone: boolean;
	continueCursor: string | null;
}

export interface AttachmentStatus {
	fileId: string;
	name: string;
	mediaType: string;
	sizeBytes: number;
	state: 'processing' | 'ready' | 'failed';
	error?: string | null;
}

export interface paths {
	'/api/app/uploads': Path<{
		post: Op<
			In,
			{ fileName: string; contentType: string; size: number; purpose?: 'document' | 'chat' },
			201,
			UploadTicket
		>;
	}>;
	'/api/app/documents': Path<{
		get: Get<In<undefined, { search?: string; status?: string; cursor?: string; limit?: number }>, DocumentPage>;
		post: Op<In, { fileId: string; title?: string }, 201, Document>;
	}>;
	'/api/app/documents/{id}': Path<{
		get: Get<In<Id>, Document>;
		patch: Op<In<Id>, { title: string }, 200, Document>;
		delete: Call<In<Id>, 204, undefined>;
	}>;
	'/api/app/documents/{id}/retry-indexing': Path<{
		post: Call<In<Id>, 200, { status: string; reason?: string | null }>;
	}>;
	'/api/app/documents/{id}/restore': Path<{ post: Call<In<Id>, 200, Document> }>;
	'/api/app/documents/{id}/text': Path<{ get: Get<In<Id, { offset?: number; limit?: number }>, ExtractedText> }>;
	'/api/app/documents/{id}/passages/{chunkId}': Path<{ get: Get<In<Id & { chunkId: string }>, Passage> }>;
	'/api/app/chat/composer': Path<{ get: Get<In, Composer> }>;
	'/api/app/chat/pick': Path<{ put: Op<In, { model: string; providerSlug?: string | null }, 200 | 204, unknown> }>;
	'/api/app/chat/threads': Path<{
		get: Get<In<undefined, { archived?: boolean; search?: string; cursor?: string; limit?: number }>, ThreadPage>;
	}>;
	'/api/app/chat/threads/{id}': Path<{
		get: Get<In<Id>, Thread>;
		patch: Op<In<Id>, { title?: string; archived?: boolean; pinned?: boolean; unread?: boolean }, 200, Thread>;
		delete: Call<In<Id>, 204, undefined>;
	}>;
	'/api/app/chat/threads/{id}/restore': Path<{ post: Call<In<Id>, 200, Thread> }>;
	'/api/app/chat/threads/{id}/messages': Path<{
		get: Get<In<Id>, { messages: Message[] }>;
		post: Op<In<Id>, SendRequest, 202, Accepted>;
	}>;
	'/api/app/chat/threads/{id}/stop': Path<{ post: Call<In<Id>, 202, unknown> }>;
	'/api/app/chat/threads/{id}/messages/{mid}/edit': Path<{ post: Op<In<MessagePath>, SendRequest, 202, Accepted> }>;
	'/api/app/chat/threads/{id}/messages/{mid}/retry': Path<{
		post: Op<In<MessagePath>, Partial<Omit<SendRequest, 'content' | 'attachments'>>, 202, Accepted>;
	}>;
	'/api/app/chat/threads/{id}/messages/{mid}/feedback': Path<{
		put: Op<In<MessagePath>, { rating: 'up' | 'down' | null; comment?: string | null }, 204, undefined>;
	}>;
	'/api/app/chat/threads/{id}/versions': Path<{ post: Op<In<Id>, { messageId: string }, 200, unknown> }>;
	'/api/app/chat/threads/{id}/fork': Path<{ post: Op<In<Id>, { messageId: string }, 201, { id: string }> }>;
	'/api/app/chat/attachments/{fileId}': Path<{ get: Get<In<{ fileId: string }>, AttachmentStatus> }>;
}
