import { MigrationError } from '../schema-engine/migration-error.js';
import { withConnection, type ConnectionFields } from './connection.js';

/**
 * Refuses an empty database that cannot store every text, or counts bytes as characters (SQL_ASCII): its limits of
 * lengths would refuse valid names. A database that has the schema already is left to `rtc doctor`.
 * @throws MigrationError unless the encoding is UTF8.
 */
export function requireUtf8(fields: ConnectionFields): Promise<void> {
  return withConnection(fields, async (client) => {
    const { rows } = await client.query<{ encoding: string; isEmpty: boolean }>(`
      SELECT current_setting('server_encoding') AS encoding, to_regclass('_prisma_migrations') IS NULL AS "isEmpty"`);
    const [database] = rows;
    if (database === undefined || database.encoding === 'UTF8' || !database.isEmpty) return;
    const message =
      `The encoding of the database is ${database.encoding}. ` +
      `Create it with: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`;
    throw new MigrationError(message, null, undefined);
  });
}
