import { redirect } from '@sveltejs/kit';
import { paths } from '#lib/shell/paths.ts';

export function load({ params, url }) {
	redirect(307, paths.settings(params.org, 'governance/logs') + url.search);
}
