import { copyPostgres as copyOver } from '@callplane/local-servers';
import pg from 'pg';

/**
 * Copies the data directory of a running PostgreSQL.
 * @param url the superuser's.
 * @param look runs right before the end: everything that it sees is in the copy.
 */
export async function copyPostgres<T>(url: string, from: string, to: string, look: () => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await copyOver(client, from, to, look);
  } finally {
    await client.end();
  }
}
