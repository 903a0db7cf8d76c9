/** A real mail server on this machine, which `scripts/setup test` fetches. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const ROOT = resolve(import.meta.dirname, '../../..');
const PYTHON = join(ROOT, '.cache/smtp/bin/python');

export const mailServerThere = (): boolean => existsSync(PYTHON);

/** A mail as it arrived. */
export interface Mail {
	to: string[];
	headers: [string, string][];
	text: string;
	html: string;
}

export interface MailServer {
	port: string;
	received: () => Mail[];
	stop: () => void;
}

/** Starts it without encryption. */
export async function startMailServer(): Promise<MailServer> {
	const folder = mkdtempSync(join(tmpdir(), 'tale-mail-'));
	const kept = join(folder, 'kept.jsonl');
	const child = spawn(PYTHON, [join(ROOT, 'crates/testkit/smtp/server.py'), 'none', kept], {
		stdio: ['pipe', 'pipe', 'inherit'],
		env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
	});
	const port = await new Promise<string>((done, failed) => {
		createInterface({ input: child.stdout }).once('line', done);
		child.once('exit', (code) => failed(new Error(`the mail server ended with ${code}`)));
	});
	const received = () => {
		const lines = existsSync(kept) ? readFileSync(kept, 'utf8').trim().split('\n') : [];
		return lines.filter(Boolean).map((line) => JSON.parse(line) as Mail);
	};
	const stop = () => {
		child.kill();
		rmSync(folder, { recursive: true, force: true });
	};
	return { port, received, stop };
}
