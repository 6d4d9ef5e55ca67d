import pg from 'pg';

/** The recorded database access of a release. */
export interface Release {
  version: string;
  /** The migrations that the release contains. */
  migrations: string[];
  /** Every distinct statement. */
  statements: string[];
  /** Rows by table, as the release writes them. */
  rows: Record<string, Record<string, unknown>[]>;
}

export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** All rows of all tables. */
export async function rowsOf(url: string): Promise<Release['rows']> {
  return withClient(url, async (client) => {
    const { rows: tables } = await client.query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> '_prisma_migrations' ORDER BY 1`,
    );
    const found: Release['rows'] = {};
    for (const { name } of tables) {
      const { rows } = await client.query<{ row: Record<string, unknown> }>(
        `SELECT to_jsonb(t) AS row FROM "${name}" t`,
      );
      if (rows.length > 0) found[name] = rows.map(({ row }) => row);
    }
    return found;
  });
}

/**
 * Reasons why a release cannot work on this database, which must not contain its rows yet: statements that PostgreSQL
 * cannot plan and rows that it rejects.
 * @returns an empty array if the release works
 */
export async function complaintsOf(release: Release, url: string): Promise<string[]> {
  return withClient(url, async (client) => [
    ...(await unplannable(client, release.statements)),
    ...(await unwritable(client, release.rows)),
  ]);
}

/** Planning detects a missing object, a changed type, and a missing unique index for an ON CONFLICT. */
async function unplannable(client: pg.Client, statements: readonly string[]): Promise<string[]> {
  const complaints: string[] = [];
  for (const statement of statements) {
    try {
      await client.query(`EXPLAIN (GENERIC_PLAN) ${statement}`);
    } catch (error) {
      complaints.push(`${(error as Error).message}: ${statement.trim().replaceAll(/\s+/g, ' ').slice(0, 200)}`);
    }
  }
  return complaints;
}

/**
 * Writes the rows with the columns of that release: new columns must have a default, and no constraint may reject the
 * rows.
 */
async function unwritable(client: pg.Client, rows: Release['rows']): Promise<string[]> {
  let waiting = Object.entries(rows);
  for (;;) {
    const refused: { entry: (typeof waiting)[number]; complaint: string }[] = [];
    // A table succeeds once the tables that it references are filled.
    for (const [table, contents] of waiting) {
      try {
        await client.query('BEGIN');
        for (const row of contents) {
          const columns = Object.keys(row)
            .map((column) => `"${column}"`)
            .join(', ');
          const source = `jsonb_populate_record(NULL::"${table}", $1::jsonb)`;
          await client.query(`INSERT INTO "${table}" (${columns}) SELECT ${columns} FROM ${source}`, [row]);
        }
        await client.query('COMMIT');
      } catch (error) {
        await client.query('ROLLBACK');
        refused.push({ entry: [table, contents], complaint: `${table}: ${(error as Error).message}` });
      }
    }
    if (refused.length === 0) return [];
    if (refused.length === waiting.length) return refused.map(({ complaint }) => complaint);
    waiting = refused.map(({ entry }) => entry);
  }
}
