/** What a role may do. The table itself lives on the server; these are its names. */
export type Capability =
	| 'chat.use'
	| 'knowledge.read'
	| 'knowledge.write'
	| 'providers.manage'
	| 'embedding.manage'
	| 'members.manage'
	| 'members.read'
	| 'apiKeys.own'
	| 'usage.read'
	| 'organization.manage'
	| 'governance.manage'
	| 'organization.delete'
	| 'ownership.transfer';
