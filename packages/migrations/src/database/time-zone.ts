import { withConnection, type ConnectionFields } from './connection.js';

/** PostgreSQL: insufficient_privilege. */
const NOT_OWNER = '42501';

/**
 * Sets the time zone of the database to UTC, where no pooler can drop it. Apps are not ready in any other one. Part of
 * every `rtc db migrate`, because a logical dump leaves settings of the database out. Call it under the migration lock.
 */
export function setTimeZone(fields: ConnectionFields, report: (line: string) => void = () => undefined): Promise<void> {
  return withConnection(fields, async (client) => {
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
  });
}
