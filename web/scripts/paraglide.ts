/** How the message catalogue is compiled; shared by the build and by `npm run messages`. */
import type { CompilerOptions } from '@inlang/paraglide-js';

export const paraglide: CompilerOptions = {
	project: './project.inlang',
	outdir: './src/lib/paraglide',
	strategy: ['localStorage', 'preferredLanguage', 'baseLocale'],
	localStorageKey: 'tale.locale'
};
