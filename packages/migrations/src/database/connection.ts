import { connectionTarget, UnfitServerError, type HostConfig } from '@callplane/db';
import pg from 'pg';

/** Where the database is. */
export interface DatabaseTarget {
  /** `postgresql://…`, with one or several hosts, and not to a pooler. */
  readonly databaseUrl: string;
  readonly passwordFile?: string;
  readonly caFile?: string;
}

/** Connection parameters of one host, as separate fields. */
export type ConnectionFields = HostConfig;

/** How long a migrator waits for a connection, in milliseconds. */
const CONNECT_DEADLINE_MS = 10_000;

/**
 * Keepalives of the client. PostgreSQL's own ones are set by `setKeepAlives`. A network that forgets an idle connection
 * is noticed within a minute instead of hours: the connection of the migration lock is idle while an index is built.
 */
export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 30_000 } as const;

/** Not as `options` of the connection, because PgBouncer refuses connections with options that it does not know. */
export async function setKeepAlives(client: pg.ClientBase): Promise<void> {
  await client.query('SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3');
}

/**
 * The host of the database that accepts writes. A migrator stays with it, because its locks belong to sessions there.
 * Drops parameters that only apps use, such as `options`.
 * @throws the error of the last host, if none accepts writes.
 */
export async function connectionFields({ databaseUrl: url, ...files }: DatabaseTarget): Promise<ConnectionFields> {
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

/** Runs `work` on a dedicated connection and closes it. */
export async function withConnection<T>(fields: ConnectionFields, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ ...fields, connectionTimeoutMillis: CONNECT_DEADLINE_MS, ...KEEP_ALIVE });
  // If an idle connection is lost, the next statement on it fails. Without a listener, the event would end the process.
  client.on('error', () => undefined);
  await client.connect();
  try {
    await setKeepAlives(client);
    return await work(client);
  } finally {
    await client.end();
  }
}
