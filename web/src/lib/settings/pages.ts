/** The settings pages that exist, in the order of the panel, with the right each one needs. */
import ChartColumn from '@lucide/svelte/icons/chart-column';
import Building2 from '@lucide/svelte/icons/building-2';
import CodeXml from '@lucide/svelte/icons/code-xml';
import Coins from '@lucide/svelte/icons/coins';
import Cpu from '@lucide/svelte/icons/cpu';
import Database from '@lucide/svelte/icons/database';
import Gauge from '@lucide/svelte/icons/gauge';
import Plug from '@lucide/svelte/icons/plug';
import Scale from '@lucide/svelte/icons/scale';
import ShieldCheck from '@lucide/svelte/icons/shield-check';
import SlidersHorizontal from '@lucide/svelte/icons/sliders-horizontal';
import UserRound from '@lucide/svelte/icons/user-round';
import UsersRound from '@lucide/svelte/icons/users-round';
import type { Role } from '#lib/api/types.ts';
import { m } from '#lib/paraglide/messages.js';
import type { Capability } from '#lib/session/capabilities.ts';
import type { Icon } from '#lib/ui/Icon.ts';

export type SettingsGroup = 'personal' | 'organization' | 'governance' | 'metrics' | 'advanced';
export type SettingsSlug =
	| 'account'
	| 'usage'
	| 'metrics/usage'
	| 'personalization'
	| 'organization'
	| 'members'
	| 'trusted-headers'
	| 'providers'
	| 'governance/content-models'
	| 'governance/policies-limits'
	| 'api/rest'
	| 'api/models'
	| 'data-residency';

export interface SettingsPage {
	slug: SettingsSlug;
	group: SettingsGroup;
	label: () => string;
	/** What is found there, for the phone's list. */
	hint: () => string;
	icon: Icon;
	/** The right a visitor needs; none for pages about oneself. */
	needs?: Capability;
	/** Who has that right, for the sentence shown to everyone else. */
	roles?: readonly Role[];
}

export const SETTINGS: readonly SettingsPage[] = [
	{
		slug: 'account',
		group: 'personal',
		label: m.settings_account,
		hint: m.settings_account_hint,
		icon: UserRound
	},
	{
		slug: 'personalization',
		group: 'personal',
		label: m.settings_preferences,
		hint: m.settings_preferences_hint,
		icon: SlidersHorizontal
	},
	{
		slug: 'usage',
		group: 'personal',
		label: m.settings_own_usage,
		hint: m.settings_own_usage_hint,
		icon: Gauge
	},
	{
		slug: 'organization',
		group: 'organization',
		label: m.settings_organization,
		hint: m.settings_organization_hint,
		icon: Building2,
		needs: 'organization.manage',
		roles: ['owner', 'admin']
	},
	{
		slug: 'members',
		group: 'organization',
		label: m.settings_members,
		hint: m.settings_members_hint,
		icon: UsersRound,
		needs: 'members.manage',
		roles: ['owner', 'admin']
	},
	{
		slug: 'trusted-headers',
		group: 'organization',
		label: m.settings_trusted,
		hint: m.settings_trusted_hint,
		icon: ShieldCheck,
		needs: 'organization.manage',
		roles: ['owner', 'admin']
	},
	{
		slug: 'providers',
		group: 'organization',
		label: m.settings_providers,
		hint: m.settings_providers_hint,
		icon: Cpu,
		needs: 'providers.manage',
		roles: ['owner', 'admin', 'developer']
	},
	{
		slug: 'governance/content-models',
		group: 'governance',
		label: m.settings_content_models,
		hint: m.settings_content_models_hint,
		icon: Scale,
		needs: 'governance.manage',
		roles: ['owner', 'admin']
	},
	{
		slug: 'governance/policies-limits',
		group: 'governance',
		label: m.settings_policies_limits,
		hint: m.settings_policies_limits_hint,
		icon: Coins,
		needs: 'governance.manage',
		roles: ['owner', 'admin']
	},
	{
		slug: 'metrics/usage',
		group: 'metrics',
		label: m.settings_usage,
		hint: m.settings_usage_hint,
		icon: ChartColumn,
		needs: 'usage.read',
		roles: ['owner', 'admin']
	},
	{
		slug: 'api/rest',
		group: 'advanced',
		label: m.settings_api,
		hint: m.settings_api_hint,
		icon: CodeXml,
		needs: 'apiKeys.own',
		roles: ['owner', 'admin', 'developer']
	},
	{
		slug: 'api/models',
		group: 'advanced',
		label: m.settings_endpoints,
		hint: m.settings_endpoints_hint,
		icon: Plug,
		needs: 'apiKeys.own',
		roles: ['owner', 'admin', 'developer']
	},
	{
		slug: 'data-residency',
		group: 'advanced',
		label: m.settings_residency,
		hint: m.settings_residency_hint,
		icon: Database,
		needs: 'embedding.manage',
		roles: ['owner', 'admin']
	}
];

export const GROUPS: readonly { id: SettingsGroup; label: () => string; phoneLabel: () => string }[] = [
	{ id: 'personal', label: m.settings_personal, phoneLabel: m.settings_you },
	{ id: 'organization', label: m.settings_organization, phoneLabel: m.settings_organization },
	{ id: 'governance', label: m.settings_governance, phoneLabel: m.settings_governance },
	{ id: 'metrics', label: m.settings_metrics, phoneLabel: m.settings_metrics },
	{ id: 'advanced', label: m.settings_advanced, phoneLabel: m.settings_advanced }
];

/** The pages a visitor may open. */
export function settingsPages(visitor: { can(capability: Capability): boolean }): SettingsPage[] {
	return SETTINGS.filter((page) => !page.needs || visitor.can(page.needs));
}
