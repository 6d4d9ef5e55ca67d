import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { copyTree } from './copy-tree.js';

/** One connection of a superuser. The begin and the end of a backup must share it. */
export interface BackupSession {
  query(sql: string): Promise<{ rows: unknown[] }>;
}

/**
 * Does the work of pg_basebackup: copies the files of a running PostgreSQL between the start and the stop of a backup,
 * the write-ahead log up to its end, and the backup label.
 * @param look runs right before the end: everything that it sees is in the copy.
 */
export async function copyPostgres<T>(
  session: BackupSession,
  from: string,
  to: string,
  look: () => Promise<T>,
): Promise<T> {
  await session.query(`SELECT pg_backup_start('copy', true)`);
  const left = /(postmaster\.(pid|opts)|standby\.signal|\/pg_wal\/.+|\/pg_replslot\/.+)$/;
  await copyTree(from, to, (path) => !left.test(path));
  const seen = await look();
  const { rows } = await session.query('SELECT labelfile FROM pg_backup_stop(false)');
  await copyTree(join(from, 'pg_wal'), join(to, 'pg_wal'), () => true);
  mkdirSync(join(to, 'pg_replslot'), { recursive: true });
  writeFileSync(join(to, 'backup_label'), (rows as [{ labelfile: string }])[0].labelfile);
  return seen;
}
