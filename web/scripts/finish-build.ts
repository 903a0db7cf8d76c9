/**
 * Finishes a build: makes the page a template for any base path, adds the files of the API reference
 * (`/docs`) and writes a compressed body beside every text file, so that the server compresses
 * nothing at run time.
 */
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const build = 'build';
const reference = join(build, '_docs');
const compressed = new Set(['.js', '.css', '.html', '.svg', '.json', '.txt', '.webmanifest']);
/** Smaller bodies do not get smaller. */
const smallest = 1024;

/** What the server writes into the page (`crates/http/src/web.rs`). */
const head = `<meta name="tale-address" content="%tale.address%" />
		<meta name="tale-stores" content="%tale.stores%" />
		<meta name="tale-support" content="%tale.support%" />
		<meta name="tale-analytics" content="%tale.analytics%" />
		<meta name="tale-reports" content="%tale.reports%" />
		`;

/** Every address of the page begins with the base path, which the server knows. */
function template(page: string): string {
	const filled = page
		.replaceAll(/(href="|src="|import\(")\//g, '$1%tale.base%/')
		.replace(/\bbase: ""/, 'base: "%tale.base%"')
		.replace('<title>', `${head}<title>`);
	const left = /["'`(]\/(?![/>])[^"'`)]*/.exec(filled);
	if (left) throw new Error(`the page has an address without the base path: ${left[0]}`);
	if (!filled.includes('base: "%tale.base%"')) throw new Error('the page does not start the app with a base path');
	return filled;
}

/** Starts the reference. Keys live in the memory of the page only. */
const start = `SwaggerUIBundle({
	url: new URL('../openapi.json', document.currentScript.src).href,
	dom_id: '#reference',
	deepLinking: true,
	persistAuthorization: false,
	validatorUrl: null,
	tryItOutEnabled: true
});
`;

/** What the file that starts the app loads is evaluated before the app knows what the page says: no more than holds that. */
async function startsAlone(): Promise<void> {
	const entries = join(build, '_app/immutable/entry');
	const loaded = (text: string) => [...text.matchAll(/\bfrom\s*["']([^"']+)["']/g)].map(([, file]) => file ?? '');
	const start = (await readdir(entries)).find((file) => /^start\.[^.]+\.js$/.test(file)) ?? 'start';
	const first = loaded(await readFile(join(entries, start), 'utf8'));
	for (const file of first) {
		const text = await readFile(join(entries, file), 'utf8');
		if (text.length > 4_000 || loaded(text).length > 0) throw new Error(`the start of the app loads ${file}`);
	}
	if (first.length === 0) throw new Error('the start of the app loads nothing that could hold what the page says');
}
await startsAlone();

const index = join(build, 'index.html');
await writeFile(index, template(await readFile(index, 'utf8')));

await mkdir(reference, { recursive: true });
for (const file of ['swagger-ui-bundle.js', 'swagger-ui.css', 'LICENSE']) {
	await copyFile(join('node_modules/swagger-ui-dist', file), join(reference, file));
}
await writeFile(join(reference, 'start.js'), start);

for (const entry of await readdir(build, { recursive: true, withFileTypes: true })) {
	const path = join(entry.parentPath, entry.name);
	// The page is served with a policy that names its scripts, so it is never served as a file.
	if (!entry.isFile() || !compressed.has(extname(path)) || dirname(path) === build) continue;
	const content = await readFile(path);
	if (content.length < smallest) continue;
	await writeFile(`${path}.gz`, gzipSync(content, { level: 9 }));
	const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
	await writeFile(`${path}.br`, brotliCompressSync(content, options));
}
