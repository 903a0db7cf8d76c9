/** What is found on each settings page, for the phone's list. */
import { m } from '#lib/paraglide/messages.js';
import type { SettingsSlug } from './pages.ts';

export const HINTS: Record<SettingsSlug, () => string> = {
	account: m.settings_account_hint,
	personalization: m.settings_preferences_hint,
	usage: m.settings_own_usage_hint,
	notifications: m.notices_hint,
	organization: m.settings_organization_hint,
	teams: m.settings_teams_hint,
	members: m.settings_members_hint,
	'enterprise-sso': m.settings_sso_hint,
	provisioning: m.provisioning_hint,
	'trusted-headers': m.settings_trusted_hint,
	providers: m.settings_providers_hint,
	branding: m.branding_hint,
	sandboxes: () => 'Python · Shell',
	'governance/content-models': m.settings_content_models_hint,
	'governance/policies-limits': m.settings_policies_limits_hint,
	'governance/security': m.settings_security_hint,
	'governance/competences': m.competences_hint,
	'governance/logs': m.settings_logs_hint,
	'metrics/usage': m.settings_usage_hint,
	'api/rest': m.settings_api_hint,
	'api/models': m.settings_endpoints_hint,
	'data-residency': m.settings_residency_hint
};
