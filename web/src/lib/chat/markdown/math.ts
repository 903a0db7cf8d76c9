/** LaTeX, loaded with its style sheet and fonts only when an answer contains mathematics. */
import katex from 'katex';
import 'katex/dist/katex.min.css';

/** HTML of a formula, or nothing when the source is not valid. Links, images and HTML inside it are refused. */
export function renderMath(tex: string, display: boolean): string | null {
	try {
		return katex.renderToString(tex, {
			displayMode: display,
			throwOnError: true,
			trust: false,
			strict: 'ignore',
			maxExpand: 500,
			maxSize: 40
		});
	} catch {
		return null;
	}
}
