/** Prints chosen messages from a frame of their own, without the interface around them. */
import { inlineText, parseMarkdown } from './markdown/parse.ts';
import type { Token, Tokens } from 'marked';

export interface Printed {
	speaker: string;
	when: string;
	markdown: string;
}

const STYLE =
	'body{font:11pt/1.5 Georgia,serif;margin:2cm;color:#000}h1{font-size:16pt}h2{font:600 10pt sans-serif;margin:1.5em 0 .3em}' +
	'h2 span{font-weight:400;color:#555}pre{white-space:pre-wrap;font-size:9pt;border-inline-start:2px solid #ccc;padding-inline-start:1em}' +
	'table{border-collapse:collapse;font-size:9pt}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:start}';

/** Opens the browser's print dialog. Everything is inserted as text; nothing of a message is read as HTML. */
export function printMessages(title: string, messages: readonly Printed[]): void {
	const frame = document.createElement('iframe');
	frame.hidden = true;
	frame.style.cssText = 'position:fixed;width:0;height:0;border:0';
	document.body.append(frame);
	const page = frame.contentDocument;
	const view = frame.contentWindow;
	if (!page || !view) return frame.remove();
	page.head.append(element(page, 'style', STYLE));
	page.title = title;
	page.body.append(element(page, 'h1', title));
	for (const message of messages) {
		const head = element(page, 'h2', `${message.speaker} `);
		head.append(element(page, 'span', message.when));
		page.body.append(head, ...parseMarkdown(message.markdown).map((block) => printed(page, block.token)));
	}
	view.onafterprint = () => frame.remove();
	view.focus();
	view.print();
}

function element(page: Document, name: string, text: string): HTMLElement {
	const made = page.createElement(name);
	made.textContent = text;
	return made;
}

function printed(page: Document, token: Token): HTMLElement {
	if (token.type === 'code') return element(page, 'pre', (token as Tokens.Code).text);
	if (token.type === 'list') {
		const list = page.createElement((token as Tokens.List).ordered ? 'ol' : 'ul');
		for (const item of (token as Tokens.List).items) {
			const row = page.createElement('li');
			row.append(...item.tokens.map((inner) => printed(page, inner)));
			list.append(row);
		}
		return list;
	}
	if (token.type === 'table') {
		const table = page.createElement('table');
		for (const [at, cells] of [(token as Tokens.Table).header, ...(token as Tokens.Table).rows].entries()) {
			const row = table.insertRow();
			for (const cell of cells) row.append(element(page, at === 0 ? 'th' : 'td', inlineText(cell.tokens)));
		}
		return table;
	}
	if (token.type === 'blockquote') {
		const quote = page.createElement('blockquote');
		quote.append(...((token as Tokens.Blockquote).tokens ?? []).map((inner) => printed(page, inner)));
		return quote;
	}
	const text = 'tokens' in token && token.tokens ? inlineText(token.tokens) : token.raw.trim();
	return element(page, token.type === 'heading' ? 'h3' : token.type === 'text' ? 'span' : 'p', text);
}
