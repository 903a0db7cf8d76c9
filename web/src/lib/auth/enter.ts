/** What follows a finished sign-in. */
import { goto } from '$app/navigation';
import { api, send } from '#lib/api/client.ts';
import { queryClient } from '#lib/api/query-client.ts';
import { landing } from '#lib/session/landing.ts';
import { readSession } from '#lib/session/session.ts';
import { admitsStore } from '#lib/shell/site.ts';

/**
 * Opens `next`, or where the person belongs; with another load where the page was not told of their object stores while
 * nobody was signed in. Whoever has to choose another password does that first.
 */
export async function enter(next: string | undefined): Promise<void> {
	queryClient.clear();
	const session = await readSession();
	if (session.passwordChange)
		return goto(next ? `${landing(session)}?next=${encodeURIComponent(next)}` : landing(session));
	const path = next ?? landing(session);
	const { origins } = await send(api.GET('/api/app/object-storage/origins'));
	if (origins.every(admitsStore)) await goto(path);
	else location.assign(path);
}
