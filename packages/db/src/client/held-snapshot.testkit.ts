import { stopAtEnd } from '@callplane/testing';
import pg from 'pg';

/**
 * Opens a transaction with a snapshot, as `pg_dump` does. It locks no table, which would block the next test.
 * @returns its connection: `ROLLBACK` releases the snapshot.
 */
export async function holdSnapshot(url: string): Promise<pg.Client> {
  const holder = new pg.Client({ connectionString: url });
  await holder.connect();
  stopAtEnd(() => holder.end());
  await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await holder.query('SELECT 1 FROM projects');
  return holder;
}
