import { withConnection, type ConnectionFields } from '../database/connection.js';

/**
 * The offset that transaction ids need so that new events sort behind the stored ones. Needed after a logical dump was
 * restored into a cluster whose transaction ids are lower than those of its events. Without it the list hides old
 * events, and readers' cursors are already past the new ones.
 * @returns null when no larger offset is needed.
 */
export function neededTransactionOffset(fields: ConnectionFields): Promise<string | null> {
  return withConnection(fields, async (client) => {
    const { rows } = await client.query<{ found: boolean }>(
      `SELECT to_regproc('callplane_transaction_offset') IS NOT NULL AS found`,
    );
    if (rows[0]?.found !== true) return null;
    // One index look-up per environment. The margin of 1000 covers events that are written while this runs.
    const { rows: needed } = await client.query<{ offset: string }>(`
      SELECT (newest - current + 1000)::text AS offset
      FROM (SELECT max((SELECT max(transaction_id) FROM events WHERE environment_id = environments.id)) AS newest,
          (pg_current_xact_id()::text)::bigint AS current
        FROM environments) AS known
      WHERE newest > current + callplane_transaction_offset()`);
    return needed[0]?.offset ?? null;
  });
}

/** Raises the offset if needed. Call it under the migration lock. */
export async function raiseTransactionOffset(fields: ConnectionFields): Promise<void> {
  const offset = await neededTransactionOffset(fields);
  if (offset === null) return;
  await withConnection(fields, (client) =>
    client.query(`CREATE OR REPLACE FUNCTION callplane_transaction_offset() RETURNS bigint
      LANGUAGE sql STABLE PARALLEL SAFE RETURN ${BigInt(offset)}::bigint`),
  );
}
