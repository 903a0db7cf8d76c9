/** The sections of the rail and of the phone's tab bar. */
import BookOpen from '@lucide/svelte/icons/book-open';
import House from '@lucide/svelte/icons/house';
import Settings from '@lucide/svelte/icons/settings';
import { m } from '#lib/paraglide/messages.js';
import type { Icon } from '#lib/ui/Icon.ts';
import { paths } from './paths.ts';

export type SectionId = 'home' | 'knowledge' | 'settings';

export interface Section {
	id: SectionId;
	label: () => string;
	icon: Icon;
	/** Where its tile leads on a desktop, and its tab on a phone. */
	href: (orgId: string) => string;
	phoneHref: (orgId: string) => string;
}

export const SECTIONS: readonly Section[] = [
	{ id: 'home', label: m.nav_home, icon: House, href: paths.newChat, phoneHref: paths.home },
	{ id: 'knowledge', label: m.nav_knowledge, icon: BookOpen, href: paths.documents, phoneHref: paths.documents },
	{ id: 'settings', label: m.nav_settings, icon: Settings, href: paths.settings, phoneHref: paths.settings }
];

/** The section an address belongs to; undefined for pages outside all of them. */
export function sectionOf(pathname: string): SectionId | undefined {
	const [, page] = /\/dashboard\/[^/]+\/([^/]+)/.exec(pathname) ?? [];
	if (page === 'chat' || page === 'home') return 'home';
	if (page === 'documents') return 'knowledge';
	if (page === 'settings') return 'settings';
	return undefined;
}
