/** The settings pages that exist, in the order of the panel, with the right each one needs. */
import BadgeCheck from '@lucide/svelte/icons/badge-check';
import Bell from '@lucide/svelte/icons/bell';
import ChartColumn from '@lucide/svelte/icons/chart-column';
import Building2 from '@lucide/svelte/icons/building-2';
import CodeXml from '@lucide/svelte/icons/code-xml';
import Coins from '@lucide/svelte/icons/coins';
import Cpu from '@lucide/svelte/icons/cpu';
import Database from '@lucide/svelte/icons/database';
import Gauge from '@lucide/svelte/icons/gauge';
import Palette from '@lucide/svelte/icons/palette';
import Network from '@lucide/svelte/icons/network';
import Plug from '@lucide/svelte/icons/plug';
import RotateCw from '@lucide/svelte/icons/rotate-cw';
import Scale from '@lucide/svelte/icons/scale';
import ScrollText from '@lucide/svelte/icons/scroll-text';
import ShieldCheck from '@lucide/svelte/icons/shield-check';
import KeyRound from '@lucide/svelte/icons/key-round';
import LogIn from '@lucide/svelte/icons/log-in';
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
	| 'notifications'
	| 'usage'
	| 'metrics/usage'
	| 'personalization'
	| 'organization'
	| 'teams'
	| 'members'
	| 'enterprise-sso'
	| 'provisioning'
	| 'trusted-headers'
	| 'providers'
	| 'branding'
	| 'sandboxes'
	| 'governance/content-models'
	| 'governance/policies-limits'
	| 'governance/security'
	| 'governance/competences'
	| 'governance/logs'
	| 'api/rest'
	| 'api/models'
	| 'data-residency';

export interface SettingsPage {
	slug: SettingsSlug;
	group: SettingsGroup;
	label: () => string;
	icon: Icon;
	/** The right a visitor needs; none for pages about oneself. */
	needs?: Capability;
	/** Who has that right, for the sentence shown to everyone else; `ADMINS` when absent. */
	roles?: readonly Role[];
}

/** Who has the right of a page that names nobody. */
export const ADMINS: readonly Role[] = ['owner', 'admin'];
const TECHNICAL: readonly Role[] = [...ADMINS, 'developer'];

export const SETTINGS: readonly SettingsPage[] = [
	{
		slug: 'account',
		group: 'personal',
		label: m.settings_account,
		icon: UserRound
	},
	{
		slug: 'personalization',
		group: 'personal',
		label: m.settings_preferences,
		icon: SlidersHorizontal
	},
	{
		slug: 'notifications',
		group: 'personal',
		label: m.notices_title,
		icon: Bell
	},
	{
		slug: 'usage',
		group: 'personal',
		label: m.settings_own_usage,
		icon: Gauge
	},
	{
		slug: 'organization',
		group: 'organization',
		label: m.settings_organization,
		icon: Building2,
		needs: 'organization.manage'
	},
	{
		slug: 'teams',
		group: 'organization',
		label: m.settings_teams,
		icon: Network,
		needs: 'teams.manage'
	},
	{
		slug: 'members',
		group: 'organization',
		label: m.settings_members,
		icon: UsersRound,
		needs: 'members.manage'
	},
	{
		slug: 'enterprise-sso',
		group: 'organization',
		label: m.settings_sso,
		icon: LogIn,
		needs: 'signIn.manage'
	},
	{
		slug: 'provisioning',
		group: 'organization',
		label: m.provisioning_title,
		icon: RotateCw,
		needs: 'signIn.manage'
	},
	{
		slug: 'trusted-headers',
		group: 'organization',
		label: m.settings_trusted,
		icon: KeyRound,
		needs: 'signIn.manage'
	},
	{
		slug: 'providers',
		group: 'organization',
		label: m.settings_providers,
		icon: Cpu,
		needs: 'providers.manage',
		roles: TECHNICAL
	},
	{
		slug: 'branding',
		group: 'organization',
		// The same in every language.
		label: () => 'Branding',
		icon: Palette,
		needs: 'organization.manage'
	},
	{
		slug: 'sandboxes',
		group: 'organization',
		// The same in every language.
		label: () => 'Sandboxes',
		icon: CodeXml,
		needs: 'sandboxes.read',
		roles: TECHNICAL
	},
	{
		slug: 'governance/content-models',
		group: 'governance',
		label: m.settings_content_models,
		icon: Scale,
		needs: 'governance.manage'
	},
	{
		slug: 'governance/policies-limits',
		group: 'governance',
		label: m.settings_policies_limits,
		icon: Coins,
		needs: 'governance.manage'
	},
	{
		slug: 'governance/security',
		group: 'governance',
		label: m.settings_security,
		icon: ShieldCheck,
		needs: 'governance.manage'
	},
	{
		slug: 'governance/competences',
		group: 'governance',
		label: m.settings_competences,
		icon: BadgeCheck,
		needs: 'competences.manage'
	},
	{
		slug: 'governance/logs',
		group: 'governance',
		label: m.settings_logs,
		icon: ScrollText,
		needs: 'audit.read'
	},
	{
		slug: 'metrics/usage',
		group: 'metrics',
		label: m.settings_usage,
		icon: ChartColumn,
		needs: 'usage.read'
	},
	{
		slug: 'api/rest',
		group: 'advanced',
		label: m.settings_api,
		icon: CodeXml,
		needs: 'apiKeys.own',
		roles: TECHNICAL
	},
	{
		slug: 'api/models',
		group: 'advanced',
		label: m.settings_endpoints,
		icon: Plug,
		needs: 'apiKeys.own',
		roles: TECHNICAL
	},
	{
		slug: 'data-residency',
		group: 'advanced',
		label: m.settings_residency,
		icon: Database,
		needs: 'organization.manage'
	}
];

export const GROUPS: readonly { id: SettingsGroup; label: () => string; phoneLabel?: () => string }[] = [
	{ id: 'personal', label: m.settings_personal, phoneLabel: m.settings_you },
	{ id: 'organization', label: m.settings_organization },
	{ id: 'governance', label: m.settings_governance },
	{ id: 'metrics', label: m.settings_metrics },
	{ id: 'advanced', label: m.settings_advanced }
];

/** The pages a visitor may open. */
export function settingsPages(visitor: { can(capability: Capability): boolean }): SettingsPage[] {
	return SETTINGS.filter((page) => !page.needs || visitor.can(page.needs));
}
