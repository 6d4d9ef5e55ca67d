import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Database } from '@callplane/db';
import { execute, createTestDatabase, repositoryRoot, stopAtEnd } from '@callplane/testing';

const EXAMPLES = join(repositoryRoot, 'packages/server-js/examples');

/** A running process of the example. */
interface Consumer {
  child: ChildProcess;
  /** The exit code, or the signal that ended the process. */
  ended: Promise<number | string>;
  /** Resolves once the process runs and handles signals. */
  started: Promise<void>;
  errors: () => string;
}

export interface CustomerDatabase {
  database: Database;
  /** Starts the example on this database. */
  consumer: () => Consumer;
  /** Ids of the processed events, in the order of processing. */
  processed: () => Promise<string[]>;
  /** Events that the counters have counted. */
  counted: () => Promise<number>;
}

/** The database of a customer with the tables of the example. */
export async function customerDatabase(baseUrl: string, key: string): Promise<CustomerDatabase> {
  const { url } = await createTestDatabase();
  const database = new Database({ url, poolMax: 3 });
  stopAtEnd(() => database.close());
  const sql = readFileSync(join(EXAMPLES, 'consume-events.sql'), 'utf8');
  for (const statement of sql.split(/;\n/)) {
    if (statement.trim() !== '') await execute(database, statement);
  }
  return {
    database,
    consumer: () => startConsumer({ DATABASE_URL: url, BASE: baseUrl, KEY: key, BATCH: '3' }),
    processed: async () => {
      const rows = await database.sql.$queryRaw<{ id: string }[]>`
        SELECT event_id AS id FROM call_log ORDER BY position`;
      return rows.map(({ id }) => id);
    },
    counted: async () => {
      const [row] = await database.sql.$queryRaw<{ events: number }[]>`
        SELECT coalesce(sum(events), 0)::int AS events FROM event_counts`;
      return row!.events;
    },
  };
}

function startConsumer(env: Record<string, string>): Consumer {
  const child = spawn(process.execPath, [join(EXAMPLES, 'consume-events.mjs')], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const started = new Promise<void>((resolve) => child.stdout.once('data', () => resolve()));
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  stopAtEnd(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, ended, started, errors: () => errors };
}
