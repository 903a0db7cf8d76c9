/** Who is shut out when the connection goes. */
import { describeProblems } from '#lib/i18n/problems.ts';
import { m } from '#lib/paraglide/messages.js';

describeProblems({ SSO_LAST_WAY_IN: m.sso_last_way_in });

/** What is asked before the connection goes, with how many people have no other way in. */
export const removalText = (shutOut: number): string =>
	[m.sso_remove_text(), shutOut > 0 ? m.sso_shuts_out({ count: shutOut }) : ''].filter(Boolean).join(' ');
