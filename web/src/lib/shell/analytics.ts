/**
 * Views of pages for the deployment's aggregate statistics. The collector's script comes through our own origin and does
 * nothing by itself: it gets the pattern of the page and what is said below, no title, no query, no id.
 */
import { base } from './paths.ts';
import { template } from './template.ts';

interface Collector {
	track(view: Record<string, string>): unknown;
}

let collector: Promise<Collector | undefined> | undefined;

function load(website: string): Promise<Collector | undefined> {
	return new Promise((done) => {
		const script = document.createElement('script');
		script.src = `${base}/_a/script.js`;
		script.dataset.websiteId = website;
		script.dataset.hostUrl = `${base}/_a`;
		script.dataset.autoTrack = 'false';
		script.dataset.doNotTrack = 'true';
		script.onload = () => done((window as { umami?: Collector }).umami);
		script.onerror = () => done(undefined);
		document.head.append(script);
	});
}

/** Whether the reader asked not to be counted. */
function declined(): boolean {
	const wishes = navigator as { doNotTrack?: string | null; globalPrivacyControl?: boolean };
	return wishes.globalPrivacyControl === true || wishes.doNotTrack === '1';
}

/** Counts a view of the page with this pattern. */
export async function countView(website: string, route: string | null, first: boolean): Promise<void> {
	if (declined()) return;
	collector ??= load(website);
	const from = first && URL.canParse(document.referrer) ? new URL(document.referrer).origin : '';
	try {
		await (
			await collector
		)?.track({
			website,
			hostname: location.hostname,
			url: template(route),
			referrer: from === location.origin ? '' : from,
			language: navigator.language,
			screen: `${screen.width}x${screen.height}`
		});
	} catch {
		// Nobody misses a view.
	}
}
