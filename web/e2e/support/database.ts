/** A database that is not the deployment's, in the Postgres that all tests share (`scripts/test-services`). */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../..');
const PSQL = join(ROOT, '.cache/postgres/18.6.3/bin/psql');

export const postgresThere = (): boolean => existsSync(PSQL);

export interface OwnDatabase {
	host: string;
	port: string;
	name: string;
	user: string;
	password: string;
	/** What a superuser reads or does in it. */
	sql: (statement: string) => string;
	drop: () => void;
}

/** Makes an empty database and the role that owns it. The extension `vector` is up to the caller. */
export function ownDatabase(): OwnDatabase {
	execFileSync(join(ROOT, 'scripts/test-services'), ['start'], { stdio: 'ignore' });
	const settings = readFileSync(join(ROOT, 'target/test-services/env'), 'utf8');
	const address = /^TEST_DATABASE_URL=(.+)$/m.exec(settings)?.[1];
	if (!address) throw new Error('target/test-services/env names no TEST_DATABASE_URL');
	const url = new URL(address);
	const run = (database: string, statement: string) =>
		execFileSync(
			PSQL,
			[
				'-X',
				'-h',
				url.hostname,
				'-p',
				url.port,
				'-U',
				url.username,
				'-d',
				database,
				'-v',
				'ON_ERROR_STOP=1',
				'-Atc',
				statement
			],
			{
				encoding: 'utf8',
				stdio: ['ignore', 'pipe', 'inherit'],
				env: { ...process.env, PGPASSWORD: decodeURIComponent(url.password) }
			}
		).trim();
	// Named after this process, so that what is left of a killed one is swept by the next test that looks.
	const stem = `tale_test_${process.pid}_${Date.now()}`;
	const made = { name: `${stem}_own`, user: `${stem}_role`, password: 'harbour-lantern' };
	run('postgres', `CREATE ROLE ${made.user} LOGIN PASSWORD '${made.password}'`);
	run('postgres', `CREATE DATABASE ${made.name} OWNER ${made.user}`);
	return {
		...made,
		host: url.hostname,
		port: url.port,
		sql: (statement) => run(made.name, statement),
		drop: () => {
			run('postgres', `DROP DATABASE ${made.name} WITH (FORCE)`);
			run('postgres', `DROP ROLE ${made.user}`);
		}
	};
}
