/**
 * Names of cached reads. Everything of an organization starts with `['org', id, topic]`, so that one hint from the
 * server can mark a whole topic stale.
 */
export const keys = {
	session: ['session'] as const,
	account: ['account'] as const,
	accountSessions: ['account', 'sessions'] as const,
	/** `keys.org(id, 'documents', filter)` */
	org: (orgId: string, ...rest: unknown[]) => ['org', orgId, ...rest] as const
};
