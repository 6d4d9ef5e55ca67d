import type { TypedSql } from './database.js';

/**
 * Resolves when a write has got through: PostgreSQL accepts writes, and commits do not wait for a standby. The write is
 * a message in PostgreSQL's log of changes, and leaves no row behind.
 */
export async function probeWrite(db: TypedSql): Promise<void> {
  await db.$queryRaw`SELECT pg_logical_emit_message(true, 'callplane', 'probe')::text`;
}
