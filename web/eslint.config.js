import svelte from 'eslint-plugin-svelte';
import ts from 'typescript-eslint';

export default ts.config(
	{ ignores: ['build/', 'tools/', '.svelte-kit/', 'src/lib/paraglide/', 'node_modules/', 'static/', 'screenshots/'] },
	...ts.configs.recommended,
	...svelte.configs.recommended,
	{
		files: ['**/*.svelte', '**/*.svelte.ts'],
		languageOptions: { parserOptions: { parser: ts.parser, extraFileExtensions: ['.svelte'] } }
	},
	{
		rules: {
			'max-lines': ['error', { max: 250, skipBlankLines: true, skipComments: true }],
			'no-console': 'error',
			// Links are built in one place (`shell/paths.ts`), which adds the base path.
			'svelte/no-navigation-without-resolve': 'off'
		}
	},
	{ files: ['scripts/**', 'e2e/**', 'src/lib/api/schema*.ts'], rules: { 'no-console': 'off', 'max-lines': 'off' } }
);
