/** What a try of a bucket found, as a sentence. */
import { toProblem } from '#lib/api/problem.ts';
import { problemText } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';
import { fieldFailure, problemOf, type ConnectionFailure } from '../connection/failure.ts';

const FIELDS: Record<string, () => string> = {
	region: m.storage_region_invalid,
	endpoint: m.storage_endpoint_invalid,
	forcePathStyle: m.storage_path_style_needed,
	bucket: m.storage_bucket_invalid,
	prefix: m.storage_prefix_invalid,
	accessKeyId: m.storage_key_invalid,
	secretAccessKey: m.storage_secret_invalid
};

export function bucketFailure(error: unknown): ConnectionFailure {
	const problem = toProblem(error);
	const named = fieldFailure(problem, FIELDS);
	if (named) return named;
	if (problem.code === 'PRIVATE_HOST_BLOCKED') return problemOf('endpoint', problem);
	if (problem.code === 'OBJECT_STORE_SAME_BUCKET') return problemOf('bucket', problem);
	if (problem.code === 'OBJECT_STORE_CHECK_FAILED') {
		const { reason, detail, bucket } = problem.data;
		if (reason === 'bucket_missing')
			return { fields: { bucket: m.storage_bucket_missing({ bucket: String(bucket) }) }, text: null };
		if (reason === 'refused') return { fields: {}, text: m.storage_refused({ detail: String(detail) }) };
		if (reason === 'unreachable') return { fields: {}, text: m.storage_unreachable({ detail: String(detail) }) };
		if (reason === 'other_bytes') return { fields: {}, text: m.storage_other_bytes() };
	}
	return { fields: {}, text: problemText(problem) };
}
