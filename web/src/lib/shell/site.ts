/** What the server wrote into the page about the place it is served at. Absent while `npm run dev` serves the page. */
import { base } from './paths.ts';

export function written(name: string): string | undefined {
	return document.querySelector<HTMLMetaElement>(`meta[name="tale-${name}"]`)?.content || undefined;
}

/** Address of this Tale for other people and programs: the origin in the address bar, and the base path. */
export function siteAddress(): string {
	return written('address') ?? location.origin + base;
}

/** The full address of one of `paths`. */
export function outward(path: string): string {
	return siteAddress() + path.slice(base.length);
}

/** Where people find help; with the organization they are in, so that helpers know whom they talk to. */
export function supportHref(orgId?: string): string {
	const url = new URL(written('support') ?? 'https://tale.dev/contact');
	if (orgId) {
		url.searchParams.delete('organizationId');
		url.searchParams.append('organizationId', orgId);
	}
	return url.href;
}

/**
 * Whether this page may exchange files with the object store at `origin`. The server says so once, when the page is
 * loaded: a bucket that was connected later needs another load.
 */
export function admitsStore(origin: string): boolean {
	const admitted = document.querySelector<HTMLMetaElement>('meta[name="tale-stores"]')?.content;
	return admitted === undefined || origin === location.origin || admitted.split(' ').includes(origin);
}
