import type { ConnectionFields } from './connection.js';
import { withConnection } from './connection.js';

/**
 * In a cluster whose transactions are younger than events that it holds (a logical dump was restored into it), numbers
 * of transactions get an offset, so that they go on behind those of the dump. Until then old events stay hidden from the
 * list, and cursors of readers have passed what is new. Does nothing otherwise.
 * @returns the new offset; null when none was needed.
 */
export function raiseTransactionOffset(fields: ConnectionFields): Promise<string | null> {
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
    const offset = needed[0]?.offset;
    if (offset === undefined) return null;
    await client.query(`CREATE OR REPLACE FUNCTION callplane_transaction_offset() RETURNS bigint
      LANGUAGE sql STABLE PARALLEL SAFE RETURN ${BigInt(offset)}::bigint`);
    return offset;
  });
}
