/** A Lucide icon component, imported singly: `import Plus from '@lucide/svelte/icons/plus'`. */
import type Plus from '@lucide/svelte/icons/plus';

export type Icon = typeof Plus;
