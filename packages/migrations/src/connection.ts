import { setTimeout as delay } from 'node:timers/promises';
import { connectionTarget, UnfitServerError, type HostConfig } from '@callplane/db';
import pg from 'pg';

export interface DatabaseTarget {
  /** `postgresql://…`, with one or several hosts, and not to a pooler. */
  readonly databaseUrl: string;
  readonly passwordFile?: string;
  readonly caFile?: string;
}

const CONNECT_DEADLINE_MS = 10_000;
/** An arbitrary fixed number ("call" in ASCII) that no other advisory lock of this database uses. */
const LOCK_KEY = 0x63616c6c;
const LOCK_RETRY_MS = 200;
/** Longer than any migration should block the others. */
const LOCK_WAIT_MS_MAX = 15 * 60_000;

/**
 * The host of the database that accepts writes.
 * @throws the error of the last host, if none accepts writes.
 */
export async function connectionFields({ databaseUrl: url, ...files }: DatabaseTarget): Promise<HostConfig> {
  const hosts = connectionTarget({ url, ...files }).hosts.map((host) => host());
  const [only] = hosts;
  if (only !== undefined && hosts.length === 1) return only;
  let failure: unknown;
  for (const fields of hosts) {
    try {
      await withConnection(fields, checkPrimary);
      return fields;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

async function checkPrimary(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ isStandby: boolean }>('SELECT pg_is_in_recovery() AS "isStandby"');
  if (rows[0]?.isStandby !== false) throw new UnfitServerError('read-only');
}

export async function withConnection<T>(fields: HostConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    ...fields,
    connectionTimeoutMillis: CONNECT_DEADLINE_MS,
    // A network that forgets an idle connection is noticed within minutes instead of hours: a connection is silent while
    // PostgreSQL builds an index.
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
  });
  // If an idle connection is lost, the next statement on it fails. Without a listener, the event would end the process.
  client.on('error', () => undefined);
  await client.connect();
  try {
    // Not as `options` of the connection, because PgBouncer refuses connections with options that it does not know.
    await client.query('SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3');
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * Runs `work` on a connection while no other migrator of this database runs. The lock belongs to the session of the
 * connection, so PostgreSQL releases it however the process ends, and never while a statement of the process still runs.
 *
 * Polls instead of waiting inside `pg_advisory_lock`: a waiting statement holds a snapshot, and a migration that runs
 * `CREATE INDEX CONCURRENTLY` would never get past that snapshot.
 */
export function withMigrationLock<T>(fields: HostConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  return withConnection(fields, async (client) => {
    for (let waitedMs = 0; ; waitedMs += LOCK_RETRY_MS) {
      const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [LOCK_KEY]);
      if (rows[0]?.locked === true) return work(client);
      if (waitedMs >= LOCK_WAIT_MS_MAX) throw new Error('Another migrator has held the migration lock for 15 minutes.');
      await delay(LOCK_RETRY_MS);
    }
  });
}
