/** What went wrong with a request, as the server describes it. */

/** Code of a request that never got an answer: no network, or nobody listening. */
export const NETWORK = 'NETWORK';

interface WireProblem {
	error?: string;
	code?: string;
	data?: Record<string, unknown>;
	requestId?: string;
}

/** A failed call. `code` is stable and decides the text people read; `message` is the server's own sentence. */
export class ApiProblem extends Error {
	constructor(
		/** HTTP status; 0 when there was no answer at all. */
		readonly status: number,
		readonly code: string,
		message: string,
		readonly data: Record<string, unknown> = {},
		readonly requestId: string | null = null,
		/** Seconds after which the server wants to be asked again; nothing when it didn't say. */
		readonly retryAfter: number | null = null
	) {
		super(message);
		this.name = 'ApiProblem';
	}

	/** Reads the server's error body; bodies that are not ours (a proxy's page) keep only the status. */
	static from(response: Response, body: unknown): ApiProblem {
		const wire: WireProblem = body && typeof body === 'object' ? body : {};
		return new ApiProblem(
			response.status,
			wire.code ?? `HTTP_${response.status}`,
			wire.error ?? response.statusText,
			wire.data ?? {},
			wire.requestId ?? response.headers.get('x-request-id'),
			response.status === 429 ? Number(response.headers.get('retry-after')) || 1 : null
		);
	}
}

/** Any thrown value as a problem, so that screens handle one type. */
export function toProblem(error: unknown): ApiProblem {
	if (error instanceof ApiProblem) return error;
	return new ApiProblem(0, 'UNEXPECTED', error instanceof Error ? error.message : String(error));
}
