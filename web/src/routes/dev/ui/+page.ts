import { error } from '@sveltejs/kit';

/** The gallery of primitives exists in development builds only. */
export function load() {
	if (!import.meta.env.DEV) error(404);
}
