/** The PDF renderer: opening files, drawing pages, and where a passage lies on them. */
import {
	getDocument,
	GlobalWorkerOptions,
	TextLayer,
	type PageViewport,
	type PDFDocumentProxy,
	type PDFPageProxy
} from 'pdfjs-dist';
import workerUrl from 'pdfjs-dist/build/pdf.worker.min.mjs?url';
import { findPassage } from './pdf-match.ts';
import type { Passage } from './types.ts';

GlobalWorkerOptions.workerSrc = workerUrl;

/** A rectangle on a page as shares of its width and height. */
export interface Box {
	left: number;
	top: number;
	width: number;
	height: number;
}

/** Marked rectangles by page number. */
export type Boxes = Map<number, Box[]>;

/** Starts reading a PDF; only what is needed for the pages on screen is fetched. */
export function openPdf(url: string): { promise: Promise<PDFDocumentProxy>; destroy: () => Promise<void> } {
	const task = getDocument({ url, withCredentials: true, disableAutoFetch: true, enableXfa: false });
	return { promise: task.promise, destroy: () => task.destroy() };
}

/** Draws a page into a canvas of `width` CSS pixels and lays its selectable text over it. Returns how to stop. */
export function drawPage(page: PDFPageProxy, canvas: HTMLCanvasElement, layer: HTMLElement, width: number): () => void {
	const scale = width / page.getViewport({ scale: 1 }).width;
	const viewport = page.getViewport({ scale });
	const density = Math.min(2, devicePixelRatio || 1);
	canvas.width = Math.floor(viewport.width * density);
	canvas.height = Math.floor(viewport.height * density);
	const drawing = page.render({
		canvas,
		viewport,
		...(density === 1 ? {} : { transform: [density, 0, 0, density, 0, 0] })
	});
	drawing.promise.catch(() => undefined);
	layer.replaceChildren();
	layer.style.setProperty('--total-scale-factor', String(scale));
	const text = new TextLayer({ textContentSource: page.streamTextContent(), container: layer, viewport });
	text.render().catch(() => undefined);
	return () => {
		drawing.cancel();
		text.cancel();
	};
}

interface Item {
	str: string;
	transform: number[];
	width: number;
	height: number;
}

/** Looks for a passage from its page on, then from the page before; when no page is known, on the first twenty. */
export async function passageBoxes(pdf: PDFDocumentProxy, passage: Passage): Promise<Boxes> {
	if (!passage.page) return boxesBetween(pdf, passage.passage, 1, 20);
	const found = await boxesBetween(pdf, passage.passage, passage.page, passage.page + 2);
	return found.size > 0 ? found : boxesBetween(pdf, passage.passage, passage.page - 1, passage.page + 2);
}

async function boxesBetween(pdf: PDFDocumentProxy, passage: string, from: number, to: number): Promise<Boxes> {
	const first = Math.max(1, from);
	const last = Math.min(pdf.numPages, to);
	const pages: { number: number; viewport: PageViewport; items: Item[] }[] = [];
	for (let number = first; number <= last; number++) {
		const page = await pdf.getPage(number);
		const { items } = await page.getTextContent();
		pages.push({
			number,
			viewport: page.getViewport({ scale: 1 }),
			items: items.filter((item): item is (typeof items)[number] & Item => 'str' in item)
		});
	}
	const boxes: Boxes = new Map();
	const runs = findPassage(
		pages.map((page) => page.items.map((item) => item.str)),
		passage
	);
	for (const run of runs) {
		const page = pages[run.page];
		if (!page) continue;
		boxes.set(
			page.number,
			merge(page.items.slice(run.first, run.last + 1).flatMap((item) => box(item, page.viewport)))
		);
	}
	return boxes;
}

function box(item: Item, viewport: PageViewport): Box[] {
	if (item.str.trim() === '' || item.width === 0) return [];
	const [, , , d = 0, x = 0, y = 0] = item.transform;
	const size = item.height || Math.abs(d);
	const [x1 = 0, y1 = 0] = viewport.convertToViewportPoint(x, y - size * 0.25) as number[];
	const [x2 = 0, y2 = 0] = viewport.convertToViewportPoint(x + item.width, y + size) as number[];
	return [
		{
			left: Math.min(x1, x2) / viewport.width,
			top: Math.min(y1, y2) / viewport.height,
			width: Math.abs(x2 - x1) / viewport.width,
			height: Math.abs(y2 - y1) / viewport.height
		}
	];
}

/** One rectangle per line instead of one per word, so that tints do not overlap. */
function merge(boxes: Box[]): Box[] {
	const lines: Box[] = [];
	for (const next of boxes) {
		const line = lines.at(-1);
		if (line && Math.abs(line.top + line.height - next.top - next.height) < line.height / 2) {
			const right = Math.max(line.left + line.width, next.left + next.width);
			const bottom = Math.max(line.top + line.height, next.top + next.height);
			line.left = Math.min(line.left, next.left);
			line.top = Math.min(line.top, next.top);
			line.width = right - line.left;
			line.height = bottom - line.top;
		} else lines.push({ ...next });
	}
	return lines;
}
