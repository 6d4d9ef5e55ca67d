import type { ClientBase } from 'pg';
import { UnfitServerError } from './unavailable.js';

/**
 * The names of UTC in the time zone database, in lower case. Not by offset: Europe/London has none in winter. A pooler
 * may set the session to another of these names than the app.
 */
const UTC_NAMES = new Set(['utc', 'etc/utc', 'uct', 'etc/uct', 'zulu', 'etc/zulu', 'universal', 'etc/universal']);

const SESSION_STATE = `
  SELECT current_setting('TimeZone') AS "timeZone", current_setting('transaction_read_only') = 'on' AS "isReadOnly"`;

/**
 * Resolves when the session accepts writes, and returns timestamps in UTC.
 * @throws UnfitServerError if it is read-only, or in another time zone: a pooler between may drop our options.
 */
export async function checkSession(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ timeZone: string; isReadOnly: boolean }>(SESSION_STATE);
  if (rows[0]?.isReadOnly !== false) throw new UnfitServerError('read-only');
  if (!UTC_NAMES.has(rows[0].timeZone.toLowerCase())) throw new UnfitServerError('time-zone');
}
