/** Where a second factor is set up. */
import { base } from '#lib/shell/paths.ts';

/** The page that sets one up; `next` is the address to open afterwards. */
export const enrollPath = (next: string, method?: string): string =>
	`${base}/2fa-enroll?next=${encodeURIComponent(next)}${method ? `&method=${method}` : ''}`;

/** Whether `pathname` is that page, or the one for another password: what was asked before it opened may still be refused. */
export const atWall = (pathname: string): boolean => /\/(2fa-enroll$|forced-)/.test(pathname);
