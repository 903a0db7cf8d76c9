/** What can be done with a row of the credential table. */
import { toProblem } from '#lib/api/problem.ts';
import { m } from '#lib/paraglide/messages.js';
import type { OpenOrg } from '#lib/session/org.svelte.ts';
import type { MenuEntry } from '#lib/ui/menu.ts';
import { toasts } from '#lib/ui/toasts.svelte.ts';
import { changeCredential, type CredentialChange } from './queries.ts';
import type { Row } from './rows.ts';

export interface RowAct {
	kind: 'test' | 'check' | 'edit' | 'edit-provider' | 'delete' | 'delete-provider';
	row: Row;
}

export function rowEntries(org: OpenOrg, row: Row, ask: (act: RowAct) => void): MenuEntry[] {
	const { credential, provider } = row;
	const entries: MenuEntry[] = [{ label: m.providers_test(), onselect: () => ask({ kind: 'test', row }) }];
	const change = async (what: CredentialChange) => {
		if (!credential) return;
		try {
			await changeCredential(org.id, credential, what);
		} catch (error) {
			toasts.problem(m.providers_not_saved(), toProblem(error));
		}
	};
	if (credential && provider.kind !== 'demo' && provider.catalogSource !== 'static') {
		entries.push({ label: m.providers_check_models(), onselect: () => ask({ kind: 'check', row }) });
	}
	if (provider.kind === 'custom') {
		entries.push({ label: m.providers_edit_provider(), onselect: () => ask({ kind: 'edit-provider', row }) });
	}
	if (credential && provider.kind !== 'demo') {
		entries.push({ label: m.providers_edit_credential(), onselect: () => ask({ kind: 'edit', row }) });
		if (!credential.isDefault && credential.enabled) {
			entries.push({ label: m.providers_make_default(), onselect: () => void change({ isDefault: true }) });
		}
	}
	if (credential) {
		entries.push({
			label: credential.enabled ? m.providers_disable() : m.providers_enable(),
			onselect: () => void change({ enabled: !credential.enabled })
		});
	}
	entries.push('separator');
	const several = provider.credentials.length > 1;
	if (credential && (provider.kind === 'shipped' || several)) {
		entries.push({
			label: m.providers_delete_credential(),
			danger: true,
			onselect: () => ask({ kind: 'delete', row })
		});
	} else {
		entries.push({ label: m.providers_delete(), danger: true, onselect: () => ask({ kind: 'delete-provider', row }) });
	}
	return entries;
}
