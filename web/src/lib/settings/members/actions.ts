/** What the signed-in person may do with a member; the server judges again. */
import ArrowRightLeft from '@lucide/svelte/icons/arrow-right-left';
import Ban from '@lucide/svelte/icons/ban';
import Fingerprint from '@lucide/svelte/icons/fingerprint';
import KeyRound from '@lucide/svelte/icons/key-round';
import ShieldCheck from '@lucide/svelte/icons/shield-check';
import UserMinus from '@lucide/svelte/icons/user-minus';
import type { Member } from '#lib/api/types.ts';
import { m } from '#lib/paraglide/messages.js';
import type { OpenOrg } from '#lib/session/org.svelte.ts';
import type { MenuEntry } from '#lib/ui/menu.ts';

export type MemberAct = { kind: 'role' | 'password' | 'factors' | 'disable' | 'transfer' | 'remove'; member: Member };

export function memberActions(org: OpenOrg, member: Member, ask: (act: MemberAct) => void): MenuEntry[] {
	const entries: MenuEntry[] = [];
	const self = member.userId === org.user.id;
	const add = (kind: MemberAct['kind'], entry: Extract<MenuEntry, { label: string }>) =>
		entries.push({ ...entry, onselect: () => ask({ kind, member }) });
	if (self || member.role === 'owner') return entries;
	if (!member.isCreator) add('role', { label: m.members_change_role(), icon: ShieldCheck });
	add('password', { label: m.members_reset_password(), icon: KeyRound });
	add('factors', { label: m.factor_member(), icon: Fingerprint });
	if (org.can('organization.own') && member.role !== 'disabled') {
		add('transfer', { label: m.members_transfer(), icon: ArrowRightLeft });
	}
	entries.push('separator');
	if (!member.isCreator && member.role !== 'disabled') add('disable', { label: m.members_disable(), icon: Ban });
	add('remove', { label: m.members_remove(), icon: UserMinus, danger: true });
	return entries;
}
