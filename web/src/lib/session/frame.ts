/**
 * Pages in frames. Who may show an organization stands in the header of the document, so in a frame an organization
 * is shown by a document that was loaded for it, never by one that another page left behind.
 */
import { base } from '#lib/shell/paths.ts';

const organizationIn = (pathname: string) => pathname.slice(base.length).split('/')[2];

let loadedFor: string | undefined;

/** Keeps the address of the document before the router changes it. */
export function noteDocument(): void {
	loadedFor = organizationIn(location.pathname);
}

/** Whether the document's header speaks for the organization at `pathname`, or no frame asks. */
export function isLoadedFor(pathname: string): boolean {
	return window.top === window || organizationIn(pathname) === loadedFor;
}
