/** What a person can do to a chat as a whole. Each reports its failure as a toast and its success where that helps. */
import { api, send } from '#lib/api/client.ts';
import { toProblem } from '#lib/api/problem.ts';
import { queryClient } from '#lib/api/query-client.ts';
import { m } from '#lib/paraglide/messages.js';
import { toasts } from '#lib/ui/toasts.svelte.ts';
import { rereadThreads, threadKey } from './queries.ts';
import type { Thread } from './types.ts';

type Change = { title?: string; archived?: boolean; pinned?: boolean; unread?: boolean };

const at = (orgId: string, id: string) => ({ params: { path: { id }, query: { orgId } } });

/** The title, or what stands in for it: a chat is named by its first reply. */
export function titleOf(thread: Pick<Thread, 'title' | 'running'> | undefined): string {
	return thread?.title || (thread?.running ? m.chat_new() : m.chat_untitled());
}

async function change(orgId: string, id: string, body: Change, failure: string): Promise<boolean> {
	try {
		const thread = await send(api.PATCH('/api/app/chat/threads/{id}', { ...at(orgId, id), body }));
		if (thread) queryClient.setQueryData(threadKey(orgId, id), thread);
		rereadThreads(orgId);
		return true;
	} catch (error) {
		toasts.problem(failure, toProblem(error));
		return false;
	}
}

/** The longest title either door accepts. */
export const TITLE_MAX = 120;

export function rename(orgId: string, id: string, title: string): Promise<boolean> {
	return change(orgId, id, { title }, m.chat_rename_failed());
}

export function pin(orgId: string, thread: Thread): Promise<boolean> {
	return change(orgId, thread.id, { pinned: thread.pinnedAt === null }, m.chat_change_failed());
}

export function markUnread(orgId: string, id: string, unread: boolean): Promise<boolean> {
	return change(orgId, id, { unread }, m.chat_change_failed());
}

export async function archive(orgId: string, id: string): Promise<boolean> {
	const done = await change(orgId, id, { archived: true }, m.chat_archive_failed());
	if (done) toasts.success(m.chat_archived(), { label: m.chat_undo(), run: () => void unarchive(orgId, id) });
	return done;
}

export function unarchive(orgId: string, id: string): Promise<boolean> {
	return change(orgId, id, { archived: false }, m.chat_unarchive_failed());
}

/** Moves a chat to the trash; the toast brings it back. Throws, so that the dialog which asked can show why not. */
export async function remove(orgId: string, id: string): Promise<void> {
	await send(api.DELETE('/api/app/chat/threads/{id}', at(orgId, id)));
	rereadThreads(orgId);
	toasts.success(m.chat_deleted(), { label: m.chat_undo(), run: () => void restore(orgId, id) });
}

async function restore(orgId: string, id: string): Promise<void> {
	try {
		await send(api.POST('/api/app/chat/threads/{id}/restore', at(orgId, id)));
		await queryClient.invalidateQueries({ queryKey: threadKey(orgId, id) });
		rereadThreads(orgId);
	} catch (error) {
		toasts.problem(m.chat_restore_failed(), toProblem(error));
	}
}
