import pg from 'pg';

/** Where the database is, field by field. */
export type ConnectionFields = Pick<pg.ClientConfig, 'host' | 'port' | 'user' | 'password' | 'database' | 'ssl'>;

/** How long a migrator waits for a connection, in milliseconds. */
const CONNECT_DEADLINE_MS = 10_000;

/**
 * Takes a database URL apart as node-postgres itself does (escaped passwords, `sslmode`, sockets, defaults), and leaves
 * parameters that only Prisma knows, such as `?schema=public`, behind.
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

/** Runs `work` on a connection of its own. */
export async function withConnection<T>(fields: ConnectionFields, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ ...fields, connectionTimeoutMillis: CONNECT_DEADLINE_MS, keepAlive: true });
  // A connection that is lost while idle fails the next statement on it; unheard, the event would end the process.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
