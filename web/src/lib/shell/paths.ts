/** Every address of the app, built in one place. */
import { resolve } from '$app/paths';

/** Prefix of all addresses when the app is served below a path; empty otherwise. */
export const base = resolve('/').replace(/\/$/, '');

const org = (orgId: string, rest: string) => `${base}/dashboard/${encodeURIComponent(orgId)}/${rest}`;

export const paths = {
	root: () => `${base}/`,
	/** `next` is the address to open after signing in. */
	logIn: (next?: string) => `${base}/log-in${next ? `?next=${encodeURIComponent(next)}` : ''}`,
	/** Where a reverse proxy hands a visitor over; `next` as above. */
	handOff: (next?: string) =>
		`${base}/api/trusted-headers/authenticate${next ? `?redirect=${encodeURIComponent(next)}` : ''}`,
	setup: () => `${base}/setup`,
	/** Where another password has to be chosen. */
	changePassword: (userId: string) => `${base}/forced-change-password/${userId}`,
	createOrganization: () => `${base}/dashboard/create-organization`,
	switching: (orgId: string) => `${base}/dashboard/switching?to=${encodeURIComponent(orgId)}`,
	home: (orgId: string) => org(orgId, 'home'),
	newChat: (orgId: string) => org(orgId, 'chat'),
	chat: (orgId: string, threadId: string, messageId?: string) =>
		org(orgId, `chat/${encodeURIComponent(threadId)}${messageId ? `?message=${encodeURIComponent(messageId)}` : ''}`),
	/** The outward address of a shared chat. */
	shared: (orgId: string, token: string) => org(orgId, `chat/shared/${encodeURIComponent(token)}`),
	documents: (orgId: string) => org(orgId, 'documents'),
	document: (orgId: string, documentId: string) => org(orgId, `documents?doc=${encodeURIComponent(documentId)}`),
	settings: (orgId: string, page?: string) => org(orgId, page ? `settings/${page}` : 'settings')
};

/** An address inside this app that may follow sign-in; anything else (another site, a protocol) is dropped. */
export function safeNext(value: string | null): string | undefined {
	if (!value || !value.startsWith(`${base}/`) || value.startsWith('//')) return undefined;
	// Browsers drop tabs and line breaks and read a backslash as a slash, so that `/\t/` begins another host: control
	// characters, spaces and backslashes are in no address of ours.
	if (/[^\u0021-\uffff]|[\u007f\\]/.test(value)) return undefined;
	const path = value.slice(base.length);
	return /^\/(log-in|setup|2fa|forced)/.test(path) ? undefined : value;
}
