/**
 * Writes the contract's types: `node generate.mjs <openapi.json> <schema.ts>`.
 *
 * Lives in a package of its own, because the generator wants another TypeScript than the app.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';

const [source, target] = process.argv.slice(2);
if (!source || !target) throw new Error('usage: node generate.mjs <openapi.json> <schema.ts>');

const text = readFileSync(source, 'utf8');
// A Rust test compares this with the contract, so stale types do not pass.
const digest = createHash('sha256').update(text).digest('hex');
const contract = JSON.parse(text);
for (const operations of Object.values(contract.paths)) {
	// Calls are named by path and method; the operations' own names would only stand in the way.
	for (const operation of Object.values(operations))
		if (operation && typeof operation === 'object') delete operation.operationId;
}
const types = astToString(await openapiTS(contract));
writeFileSync(
	target,
	`/* Generated from the API contract (sha256 ${digest}) by \`make openapi\`. Do not edit. */\n\n${types}`
);
