/**
 * First-load JavaScript of a page: everything that has to arrive before `/chat` can be used, compressed. Fails above the
 * budget. Reads the manifest that the build leaves beside its output.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const BUDGET = 150_000;
const ROUTE = '/dashboard/[org]/(home)/chat';

interface Chunk {
	file: string;
	imports?: string[];
	dynamicImports?: string[];
}

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const client = join(root, '.svelte-kit/output/client');
const manifest = JSON.parse(readFileSync(join(client, '.vite/manifest.json'), 'utf8')) as Record<string, Chunk>;

/** The layouts and the page of the route are separate entries, found by the source file they were made of. */
function nodesOf(route: string): string[] {
	const entries = Object.keys(manifest).filter((key) => /client-optimized\/nodes\/\d+\.js$/.test(key));
	const wanted = routeFiles(route);
	return entries.filter((key) => {
		const source = readFileSync(join(root, key), 'utf8');
		return wanted.some((file) => source.includes(file));
	});
}

function routeFiles(route: string): string[] {
	const parts = route.split('/').filter(Boolean);
	const folders = parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`);
	const layouts = ['', ...folders].map((folder) => `src/routes${folder}/+layout.svelte`);
	const page = existsSync(join(root, `src/routes${route}/+page.svelte`))
		? `src/routes${route}/+page.svelte`
		: `src/routes${route}/[[threadId]]/+page.svelte`;
	return [...layouts, page];
}

const wanted = new Set<string>();
function follow(key: string): void {
	if (wanted.has(key) || !manifest[key]) return;
	wanted.add(key);
	for (const next of manifest[key].imports ?? []) follow(next);
}
for (const key of Object.keys(manifest)) {
	const start = /runtime\/client\/(entry|payload)\.js$/.test(key);
	if (start || /client-optimized\/app\.js$/.test(key)) follow(key);
	// The start file loads the router by a dynamic import; no page works without it.
	if (start) for (const next of manifest[key]?.dynamicImports ?? []) follow(next);
}
for (const node of nodesOf(ROUTE)) follow(node);

let total = 0;
const rows: [number, string][] = [];
for (const key of wanted) {
	const file = manifest[key]?.file;
	if (!file?.endsWith('.js')) continue;
	const size = gzipSync(readFileSync(join(client, file)), { level: 9 }).length;
	total += size;
	rows.push([size, `${file}  ${key.startsWith('_') ? '' : key}`]);
}
for (const [size, name] of rows.sort((a, b) => b[0] - a[0]).slice(0, 12))
	console.log(`${String(size).padStart(8)}  ${name}`);
console.log(`${rows.length} files, ${(total / 1000).toFixed(1)} kB of ${BUDGET / 1000} kB compressed on ${ROUTE}`);
process.exitCode = total > BUDGET || rows.length < 5 ? 1 : 0;
