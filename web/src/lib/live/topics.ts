/** Which cached reads a hint makes stale. */
import { keys } from '#lib/api/keys.ts';
import type { HintEvent } from './events.ts';

type Key = readonly unknown[];

/** Key prefixes to re-read when an operator changed a configuration file; of unknown folders, everything. */
export function staleKeysOfFile(orgId: string, path: string): Key[] {
	switch (path.split('/')[0]) {
		case 'knowledge':
		case 'object-storage':
			return staleKeys(orgId, { topic: 'storage' });
		case 'branding':
			return staleKeys(orgId, { topic: 'organization' });
		case 'governance':
			return staleKeys(orgId, { topic: 'policies' });
		default:
			return [keys.org(orgId)];
	}
}

/** Key prefixes to re-read for a hint; an unknown topic re-reads the whole organization. */
export function staleKeys(orgId: string, { topic, id }: HintEvent): Key[] {
	const org = (...rest: unknown[]) => keys.org(orgId, ...rest);
	switch (topic) {
		case 'threads':
			return [org('threads')];
		case 'thread':
			return id ? [org('threads'), org('thread', id)] : [org('threads'), org('thread')];
		case 'sharedChats':
			return [org('shared')];
		case 'documents':
			return [org('documents'), org('composer'), org('embedding')];
		case 'document':
			return id ? [org('documents'), org('document', id), org('embedding')] : [org('documents'), org('document')];
		case 'members':
			return [org('members'), org('permissions'), org('teams'), keys.session];
		case 'teams':
			return [org('teams'), org('composer')];
		case 'providers':
			return [org('providers'), org('composer'), org('embedding'), org('transcription'), org('modelEndpoints')];
		case 'embedding':
			return [org('embedding'), org('composer'), org('documents')];
		case 'storage':
			return [org('storage')];
		case 'apiKeys':
			return [org('apiKeys')];
		case 'organization':
			return [keys.session, org('branding'), org('trustedHeaders'), org('sso')];
		case 'policies':
			return ['governance', 'composer', 'transcription', 'budget', 'modelEndpoints'].map((of) => org(of));
		case 'preferences':
		case 'notifications':
		case 'sandboxes':
		case 'codeRuns':
			return [org(topic)];
		default:
			return [org()];
	}
}
