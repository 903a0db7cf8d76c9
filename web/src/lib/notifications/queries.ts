/** What the person is told, and what they want to be told of. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/svelte-query';
import { api, send } from '#lib/api/client.ts';
import { keys } from '#lib/api/keys.ts';
import { queryClient } from '#lib/api/query-client.ts';
import type { components } from '#lib/api/schema.ts';
import type { Locale } from '#lib/i18n/locale.svelte.ts';

export type Notification = components['schemas']['Notification'];
export type NotificationSettings = components['schemas']['NotificationSettings'];
type NotificationPage = components['schemas']['NotificationPage'];

export type Which = 'unread' | 'all';

export const unreadQuery = (orgId: string) =>
	queryOptions({
		queryKey: keys.org(orgId, 'notifications', 'count'),
		queryFn: ({ signal }) => send(api.GET('/api/app/notifications/unread', { params: { query: { orgId } }, signal }))
	});

export const noticesQuery = (orgId: string, which: Which, locale: Locale) =>
	infiniteQueryOptions({
		queryKey: keys.org(orgId, 'notifications', 'list', which, locale),
		queryFn: ({ pageParam, signal }): Promise<NotificationPage> =>
			send(
				api.GET('/api/app/notifications', {
					params: {
						query: {
							orgId,
							locale,
							...(which === 'unread' ? { unread: true } : {}),
							...(pageParam ? { cursor: pageParam } : {})
						}
					},
					signal
				})
			),
		initialPageParam: '',
		getNextPageParam: (last: NotificationPage) => (last.isDone ? undefined : last.continueCursor)
	});

/** Marks some or all as read; the lists follow. */
export async function markRead(orgId: string, ids?: string[]): Promise<void> {
	const request = { params: { query: { orgId } }, body: ids ? { ids } : {}, keepalive: true };
	await send(api.POST('/api/app/notifications/read', request));
	await queryClient.invalidateQueries({ queryKey: keys.org(orgId, 'notifications') });
}

export const noticeSettingsQuery = (orgId: string) =>
	queryOptions({
		queryKey: keys.org(orgId, 'notificationSettings'),
		queryFn: ({ signal }) => send(api.GET('/api/app/notifications/settings', { params: { query: { orgId } }, signal }))
	});

export async function saveNoticeSettings(
	orgId: string,
	wishes: { muted: string[]; unmailed?: string[] }
): Promise<void> {
	const request = { params: { query: { orgId } }, body: wishes };
	const saved = await send(api.PUT('/api/app/notifications/settings', request));
	queryClient.setQueryData(noticeSettingsQuery(orgId).queryKey, saved);
}
