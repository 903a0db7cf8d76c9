import { redirect } from '@sveltejs/kit';
import { paths } from '#lib/shell/paths.ts';

export function load({ params }) {
	redirect(307, paths.settings(params.org, 'governance/content-models'));
}
