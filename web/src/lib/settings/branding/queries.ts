/** How the organization looks: its colour by Save, its images at once. */
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { toProblem } from '#lib/api/problem.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { Branding, BrandingImage } from '#lib/api/types.ts';
import { problemText } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';

export type Slot = BrandingImage['slot'];

/** What the server accepts, in bytes. */
export const MAX_BYTES = 1024 * 1024;
/** Smaller pictures look blurred on sharp screens. */
export const FINE_PIXELS = 64;

export const brandingQuery = (orgId: string) => ({
	queryKey: keys.org(orgId, 'branding'),
	queryFn: ({ signal }: { signal: AbortSignal }): Promise<Branding> =>
		send(api.GET('/api/app/branding', { params: { query: { orgId } }, signal }))
});

/** Keeps what the server answered, and has the app look like it. */
async function settle(orgId: string, call: Promise<Branding>): Promise<void> {
	queryClient.setQueryData(brandingQuery(orgId).queryKey, await call);
	await queryClient.invalidateQueries({ queryKey: keys.session });
}

export const saveColor = (orgId: string, accentColor: string | null, version: number): Promise<void> =>
	settle(orgId, send(api.PUT('/api/app/branding', { params: { query: { orgId } }, body: { accentColor, version } })));

export const resetBranding = (orgId: string): Promise<void> =>
	settle(orgId, send(api.DELETE('/api/app/branding', { params: { query: { orgId } } })));

export const uploadImage = (orgId: string, slot: Slot, file: File): Promise<void> =>
	settle(
		orgId,
		send(
			api.PUT('/api/app/branding/images/{slot}', {
				params: { path: { slot }, query: { orgId } },
				// Bytes, as they are.
				body: file as unknown as never,
				bodySerializer: (body: unknown) => body as File,
				headers: { 'Content-Type': 'application/octet-stream' }
			})
		)
	);

export const removeImage = (orgId: string, slot: Slot): Promise<void> =>
	settle(orgId, send(api.DELETE('/api/app/branding/images/{slot}', { params: { path: { slot }, query: { orgId } } })));

/** Why an image was refused. */
export function imageProblem(error: unknown): string {
	const problem = toProblem(error);
	switch (problem.code) {
		case 'IMAGE_SVG_ACTIVE_CONTENT':
			return m.branding_image_active();
		case 'UNSUPPORTED_FILE_TYPE':
			return m.branding_image_kind();
		case 'FILE_TOO_LARGE':
		case 'BODY_TOO_LARGE':
			return m.branding_image_large();
		default:
			return problemText(problem);
	}
}
