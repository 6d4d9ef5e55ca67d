import { withConnection, type ConnectionFields } from './connection.js';

/**
 * By how much numbers of transactions have to be raised, so that they go on behind those of the events that are there.
 * Needed in a cluster whose transactions are younger than its events (a logical dump was restored into it): until then
 * old events stay hidden from the list, and cursors of readers have passed what is new.
 * @returns null when they do already.
 */
export function neededTransactionOffset(fields: ConnectionFields): Promise<string | null> {
  return withConnection(fields, async (client) => {
    const { rows } = await client.query<{ found: boolean }>(
      `SELECT to_regproc('callplane_transaction_offset') IS NOT NULL AS found`,
    );
    if (rows[0]?.found !== true) return null;
    // One look into the index for each environment. The margin is for whatever was written while this runs.
    const { rows: needed } = await client.query<{ offset: string }>(`
      SELECT (newest - current + 1000)::text AS offset
      FROM (SELECT max((SELECT max(transaction_id) FROM events WHERE environment_id = environments.id)) AS newest,
          (pg_current_xact_id()::text)::bigint AS current
        FROM environments) AS known
      WHERE newest > current + callplane_transaction_offset()`);
    return needed[0]?.offset ?? null;
  });
}

/** Raises it, where it is needed; under the lock of migrations. */
export async function raiseTransactionOffset(fields: ConnectionFields): Promise<void> {
  const offset = await neededTransactionOffset(fields);
  if (offset === null) return;
  await withConnection(fields, (client) =>
    client.query(`CREATE OR REPLACE FUNCTION callplane_transaction_offset() RETURNS bigint
      LANGUAGE sql STABLE PARALLEL SAFE RETURN ${BigInt(offset)}::bigint`),
  );
}
