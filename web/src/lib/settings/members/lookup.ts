/** Whether somebody has an account. */
import { api, send } from '#lib/api/client.ts';

/** Whether an address has an account already; `null` when that cannot be said now. */
export async function lookUp(orgId: string, email: string): Promise<{ account: boolean; member: boolean } | null> {
	try {
		return await send(api.GET('/api/app/members/lookup', { params: { query: { orgId, email } } }));
	} catch {
		// Asked too often, or not there: adding says the same.
		return null;
	}
}
