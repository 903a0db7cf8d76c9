/** What is told about each page that comes up, when the deployment wants to know. */
import { afterNavigate, beforeNavigate } from '$app/navigation';
import { written } from './site.ts';

/** Call it while the outermost layout is set up. */
export function tellViews(): void {
	const website = written('analytics');
	const share = Number(written('reports'));
	if (!website && !share) return;
	let began = 0;
	let first = true;
	beforeNavigate(() => {
		began = performance.now();
	});
	afterNavigate(({ to }) => {
		const [loaded, ms] = [first, performance.now() - began];
		first = false;
		const nothing = () => {};
		if (website)
			import('./analytics.ts').then((part) => part.countView(website, to?.route.id ?? null, loaded), nothing);
		if (Math.random() < share) import('./reports.ts').then((part) => part.tellTime(loaded, ms), nothing);
	});
}
