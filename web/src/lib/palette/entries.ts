/** What the palette offers: pages of the app that match, then chats and documents the server found. */
import BookOpen from '@lucide/svelte/icons/book-open';
import FileText from '@lucide/svelte/icons/file-text';
import Keyboard from '@lucide/svelte/icons/keyboard';
import MessageCircle from '@lucide/svelte/icons/message-circle';
import PanelLeft from '@lucide/svelte/icons/panel-left';
import SquarePen from '@lucide/svelte/icons/square-pen';
import type { SearchResults } from '#lib/api/types.ts';
import { formatAge } from '#lib/i18n/format.ts';
import { m } from '#lib/paraglide/messages.js';
import type { OpenOrg } from '#lib/session/org.svelte.ts';
import { settingsPages } from '#lib/settings/pages.ts';
import { homePanel } from '#lib/shell/panel.svelte.ts';
import { paths } from '#lib/shell/paths.ts';
import { keysOf } from '#lib/shell/platform.ts';
import { shortcutsDialog } from '#lib/shell/shortcuts-dialog.svelte.ts';
import type { Icon } from '#lib/ui/Icon.ts';
import type { Scope } from './queries.ts';

export interface Entry {
	id: string;
	icon: Icon;
	title: string;
	/** Words around the match, the match between « and ». */
	snippet?: string;
	where: string;
	archived?: boolean;
	/** Where it leads, or what it does. */
	href?: string;
	run?: () => void;
	/** Its shortcut, as printed. */
	keys?: string;
}

function pages(org: OpenOrg): Entry[] {
	const list: Entry[] = [
		{
			id: 'new-chat',
			icon: SquarePen,
			title: m.palette_new_chat(),
			where: m.palette_action(),
			keys: keysOf('N', { alt: true }),
			href: paths.newChat(org.id)
		},
		{
			id: 'documents',
			icon: BookOpen,
			title: m.palette_documents(),
			where: m.nav_knowledge(),
			href: paths.documents(org.id)
		}
	];
	if (homePanel.present) {
		list.push({
			id: 'fold',
			icon: PanelLeft,
			title: homePanel.folded ? m.nav_show_sidebar() : m.nav_hide_sidebar(),
			where: m.palette_action(),
			keys: keysOf('\\'),
			run: () => homePanel.toggle()
		});
	}
	list.push({
		id: 'shortcuts',
		icon: Keyboard,
		title: m.shortcuts_title(),
		where: m.palette_action(),
		run: () => (shortcutsDialog.open = true)
	});
	for (const page of settingsPages(org)) {
		list.push({
			id: page.slug,
			icon: page.icon,
			title: page.label(),
			where: m.nav_settings(),
			href: paths.settings(org.id, page.slug)
		});
	}
	return list;
}

/** Entries for what is typed. Live chats come before archived ones. */
export function entriesFor(org: OpenOrg, query: string, scope: Scope, found: SearchResults | undefined): Entry[] {
	const wanted = query.trim().toLocaleLowerCase();
	const list = scope === 'chats' ? [] : pages(org).filter((entry) => entry.title.toLocaleLowerCase().includes(wanted));
	if (!found || wanted === '') return list;
	const chats = found.threads.map((thread): Entry => ({
		id: `chat-${thread.id}`,
		icon: MessageCircle,
		title: thread.title ?? m.palette_untitled(),
		snippet: thread.snippet ?? undefined,
		where: `${m.palette_chat()} · ${formatAge(thread.updatedAt)}`,
		archived: thread.archived,
		href: paths.chat(org.id, thread.id, thread.messageId ?? undefined)
	}));
	const documents = found.documents.map((document): Entry => ({
		id: `document-${document.id}`,
		icon: FileText,
		title: document.title,
		where: m.palette_document(),
		href: paths.document(org.id, document.id)
	}));
	const live = chats.filter((entry) => !entry.archived);
	const archived = chats.filter((entry) => entry.archived);
	return [...list, ...live, ...documents, ...archived];
}
