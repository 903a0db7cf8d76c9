import { error } from '@sveltejs/kit';

/** Addresses below a dashboard that lead nowhere keep its frame. */
export function load() {
	error(404);
}
