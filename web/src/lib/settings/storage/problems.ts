/** What a try of a bucket found, as a sentence. */
import { toProblem } from '#lib/api/problem.ts';
import { problemText } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';

/** What was wrong: a sentence for each field, and one for the whole form. */
export interface BucketFailure {
	fields: Record<string, string>;
	text: string | null;
}

const FIELDS: Record<string, () => string> = {
	region: m.storage_region_invalid,
	endpoint: m.storage_endpoint_invalid,
	forcePathStyle: m.storage_path_style_needed,
	bucket: m.storage_bucket_invalid,
	prefix: m.storage_prefix_invalid,
	accessKeyId: m.storage_key_invalid,
	secretAccessKey: m.storage_secret_invalid
};

export function bucketFailure(error: unknown): BucketFailure {
	const problem = toProblem(error);
	const { issues, reason, detail, bucket } = problem.data;
	const fields: Record<string, string> = {};
	for (const issue of Array.isArray(issues) ? issues : []) {
		const text = FIELDS[String(issue?.path)];
		if (text) fields[String(issue.path)] = text();
	}
	if (Object.keys(fields).length > 0) return { fields, text: null };
	if (problem.code === 'PRIVATE_HOST_BLOCKED') return { fields: { endpoint: problemText(problem) }, text: null };
	if (problem.code === 'OBJECT_STORE_SAME_BUCKET') return { fields: { bucket: problemText(problem) }, text: null };
	if (problem.code === 'OBJECT_STORE_CHECK_FAILED') {
		if (reason === 'bucket_missing')
			return { fields: { bucket: m.storage_bucket_missing({ bucket: String(bucket) }) }, text: null };
		if (reason === 'refused') return { fields, text: m.storage_refused({ detail: String(detail) }) };
		if (reason === 'unreachable') return { fields, text: m.storage_unreachable({ detail: String(detail) }) };
		if (reason === 'other_bytes') return { fields, text: m.storage_other_bytes() };
	}
	return { fields, text: problemText(problem) };
}
