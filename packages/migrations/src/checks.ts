import { SESSION_SETTINGS } from '@callplane/db';
import type pg from 'pg';

/** PostgreSQL: insufficient_privilege. */
const NOT_OWNER = '42501';

/**
 * Refuses a database that cannot store every text, or counts bytes as characters (SQL_ASCII): its limits of lengths would
 * refuse valid names.
 * @returns the problem; null if the encoding is UTF8.
 */
export async function encodingProblem(client: pg.Client): Promise<string | null> {
  const { rows } = await client.query<{ encoding: string }>(`SELECT current_setting('server_encoding') AS encoding`);
  const encoding = rows[0]?.encoding;
  if (encoding === 'UTF8') return null;
  const howTo = `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`;
  return `The encoding of the database is ${encoding}. Create it with: ${howTo}`;
}

/**
 * Gives the database the settings of sessions that the apps rely on, where no pooler can drop them. Apps are not ready with
 * others. Part of every `rtc db migrate`, because a logical dump leaves settings of the database out.
 */
export async function setSessionSettings(client: pg.Client, report: (line: string) => void): Promise<void> {
  const { rows } = await client.query<{ statement: string }>(
    `SELECT format('ALTER DATABASE %I SET %I TO %L', current_database(), name, value) AS statement
    FROM unnest($1::text[], $2::text[]) AS wanted (name, value)
    WHERE NOT EXISTS (
      SELECT FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
      WHERE datname = current_database() AND setrole = 0 AND name || '=' || value ILIKE ANY (setconfig))`,
    [Object.keys(SESSION_SETTINGS), Object.values(SESSION_SETTINGS)],
  );
  try {
    for (const { statement } of rows) await client.query(statement);
  } catch (error) {
    if ((error as { code?: unknown }).code !== NOT_OWNER) throw error;
    report('The role does not own the database, so its settings stay as they are. Apps behind a pooler need them.');
  }
}

/**
 * Raises the offset of transaction ids if new events would sort before stored ones. That happens after a logical dump
 * was restored into a cluster with lower transaction ids than its events: the list would hide old events, and readers'
 * cursors would already be past the new ones.
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
