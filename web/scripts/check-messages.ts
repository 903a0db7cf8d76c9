/**
 * Fails when a message is missing in a language, used by nothing, used but not defined, or has other placeholders than
 * the English one.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const locales = ['en', 'de', 'fr'] as const;
const folders = [
	'messages',
	'messages/branding',
	'messages/chat',
	'messages/competences',
	'messages/documents',
	'messages/notifications',
	'messages/sandboxes',
	'messages/sso'
];
const problems: string[] = [];

type Catalogue = Map<string, string>;

function load(folder: string, locale: string): Catalogue {
	const parsed = JSON.parse(readFileSync(join(root, folder, `${locale}.json`), 'utf8')) as Record<string, unknown>;
	delete parsed.$schema;
	return new Map(Object.entries(parsed).map(([key, value]) => [key, JSON.stringify(value)]));
}

/** The names in braces; a plural form may leave out its number. */
function placeholders(text: string): string {
	return [...new Set([...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]))].sort().join(', ');
}

function files(folder: string): string[] {
	return readdirSync(folder, { withFileTypes: true, recursive: true })
		.filter((entry) => entry.isFile() && /\.(svelte|ts)$/.test(entry.name))
		.map((entry) => join(entry.parentPath, entry.name))
		.filter((path) => !path.includes('/paraglide/'));
}

const defined = new Set<string>();
for (const folder of folders) {
	const catalogues = locales.map((locale) => [locale, load(folder, locale)] as const);
	const english = catalogues[0]?.[1] ?? new Map<string, string>();
	for (const [locale, catalogue] of catalogues) {
		for (const [key, text] of english) {
			const translated = catalogue.get(key);
			if (translated === undefined) problems.push(`${folder}/${locale}.json: ${key} is missing`);
			else if (placeholders(translated) !== placeholders(text))
				problems.push(
					`${folder}/${locale}.json: ${key} has {${placeholders(translated)}}, English has {${placeholders(text)}}`
				);
		}
		for (const key of catalogue.keys()) {
			if (!english.has(key)) problems.push(`${folder}/${locale}.json: ${key} is not in English`);
		}
	}
	for (const key of english.keys()) {
		if (defined.has(key)) problems.push(`${folder}/en.json: ${key} stands in two catalogues`);
		defined.add(key);
	}
}

const used = new Set<string>();
for (const path of files(join(root, 'src'))) {
	const source = readFileSync(path, 'utf8');
	for (const match of source.matchAll(/\bm\.([a-z][a-z0-9_]*)\b/g)) used.add(match[1] ?? '');
}
for (const key of defined) if (!used.has(key)) problems.push(`${key} is used by nothing`);
for (const key of used) if (!defined.has(key)) problems.push(`${key} is used and not defined`);

for (const problem of problems) console.error(problem);
console.log(`${defined.size} messages in ${locales.length} languages, ${problems.length} problems`);
process.exitCode = problems.length > 0 ? 1 : 0;
