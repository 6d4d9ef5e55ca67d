import pg from 'pg';

/** Connection parameters of the database, as separate fields. */
export type ConnectionFields = Pick<pg.ClientConfig, 'host' | 'port' | 'user' | 'password' | 'database' | 'ssl'>;

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
 * Parses a database URL as node-postgres does (escaped passwords, `sslmode`, sockets, defaults). Drops parameters that
 * only Prisma knows, such as `?schema=public`.
 */
export function connectionFields(databaseUrl: string): ConnectionFields {
  const { host, port, user, password, database, ssl } = new pg.Client({ connectionString: databaseUrl });
  return {
    host,
    port,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password }),
    ...(database === undefined ? {} : { database }),
    ssl,
  };
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
