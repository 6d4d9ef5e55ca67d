import type pg from 'pg';

/** PostgreSQL: insufficient_privilege. */
const NOT_OWNER = '42501';

/**
 * Refuses a database that cannot store every text, or counts bytes as characters (SQL_ASCII): its limits of lengths would
 * refuse valid names.
 * @returns what is wrong; null if the encoding is UTF8.
 */
export async function encodingProblem(client: pg.Client): Promise<string | null> {
  const { rows } = await client.query<{ encoding: string }>(`SELECT current_setting('server_encoding') AS encoding`);
  const encoding = rows[0]?.encoding;
  if (encoding === 'UTF8') return null;
  const howTo = `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`;
  return `The encoding of the database is ${encoding}. Create it with: ${howTo}`;
}

/**
 * Sets the time zone of the database to UTC, where no pooler can drop it. Apps are not ready in any other one. Part of
 * every `rtc db migrate`, because a logical dump leaves settings of the database out.
 */
export async function setTimeZone(client: pg.Client, report: (line: string) => void): Promise<void> {
  const { rowCount } = await client.query(`
    SELECT 1 FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
    WHERE datname = current_database() AND setrole = 0 AND 'timezone=utc' ILIKE ANY (setconfig)`);
  if (rowCount !== 0) return;
  try {
    await client.query(`DO $$ BEGIN
      EXECUTE format('ALTER DATABASE %I SET timezone TO ''UTC''', current_database()); END $$`);
  } catch (error) {
    if ((error as { code?: unknown }).code !== NOT_OWNER) throw error;
    report('The role does not own the database, so its time zone stays as it is. Apps behind a pooler need UTC.');
  }
}

/**
 * Raises the offset of transaction ids if new events would sort before stored ones. That happens after a logical dump was
 * restored into a cluster whose transaction ids are lower than those of its events: the list would hide old events, and
 * readers' cursors would already be past the new ones.
 */
export async function raiseTransactionOffset(client: pg.Client): Promise<void> {
  // One index look-up per environment. The margin of 1000 covers events that are written while this runs.
  const { rows } = await client.query<{ offset: string }>(`
    SELECT (newest - current + 1000)::text AS offset
    FROM (SELECT max((SELECT max(transaction_id) FROM events WHERE environment_id = environments.id)) AS newest,
        (pg_current_xact_id()::text)::bigint AS current
      FROM environments) AS known
    WHERE newest > current + callplane_transaction_offset()`);
  const [needed] = rows;
  if (needed === undefined) return;
  await client.query(`CREATE OR REPLACE FUNCTION callplane_transaction_offset() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE RETURN ${BigInt(needed.offset)}::bigint`);
}
