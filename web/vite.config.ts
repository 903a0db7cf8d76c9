import { paraglideVitePlugin } from '@inlang/paraglide-js';
import adapter from '@sveltejs/adapter-static';
import { sveltekit } from '@sveltejs/kit/vite';
import tailwindcss from '@tailwindcss/vite';
import { defineConfig } from 'vite';
import { paraglide } from './scripts/paraglide.ts';

/** Where the back end listens while the web app runs from `npm run dev`. */
const backend = process.env.TALE_BACKEND_URL ?? 'http://localhost:3000';
const proxied = ['/api', '/events', '/objects', '/openapi.json', '/docs', '/ping', '/ready'];

export default defineConfig({
	plugins: [
		tailwindcss(),
		paraglideVitePlugin(paraglide),
		sveltekit({
			adapter: adapter({ pages: 'build', assets: 'build', fallback: 'index.html', precompress: false }),
			compilerOptions: { runes: true },
			// Files of the build find each other wherever they are served; the page gets its base path from the server.
			paths: { relative: true },
			version: { pollInterval: 0 }
		})
	],
	build: {
		rolldownOptions: {
			output: {
				// Without this every message and icon that two pages share becomes a file of its own: a hundred requests of
				// 300 bytes, each compressed alone.
				codeSplitting: {
					groups: [
						// What the page tells the app (its base path) is stored before anything that reads it is loaded: the file
						// that stores it needs nothing but this.
						{ name: 'payload', test: /kit\/src\/runtime\/client\/payload\.js|vite\/preload-helper/, priority: 2 },
						// Frames of other pages, the rules of passwords, what only the settings share and what forms are made of are
						// not part of it.
						{
							name: 'shared',
							test: /src\/lib\/(?!auth\/(?:[A-Z]|password)|settings\/|ui\/(?:Card|Checkbox|Page|PageHeader|PasswordInput|RadioGroup|Section|Select|Switch|Table|TableSkeleton|TextArea|TokenInput)\.svelte)|@lucide|svelte-query/,
							minShareCount: 4,
							maxModuleSize: 20_000,
							priority: 1
						},
						{ name: 'forms', test: /src\/lib\/ui\//, minShareCount: 4 }
					]
				}
			}
		}
	},
	server: {
		proxy: Object.fromEntries(proxied.map((path) => [path, { target: backend, changeOrigin: false, ws: false }]))
	}
});
