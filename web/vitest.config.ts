import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

/** Unit tests compile runes and nothing else: no router, no message compiler watching its files. */
export default defineConfig({
	plugins: [svelte({ configFile: false, compilerOptions: { runes: true } })],
	test: { include: ['src/**/*.test.ts'] }
});
