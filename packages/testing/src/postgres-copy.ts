import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { copyFile, mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';

/**
 * Does the work of pg_basebackup: copies the files of a running PostgreSQL between the start and the stop of a backup,
 * the write-ahead log up to its end, and the backup label.
 * @param admin a superuser's connection.
 * @param look runs right before the end: everything that it sees is in the copy.
 */
export async function copyPostgres<T>(
  admin: string | pg.ClientConfig,
  from: string,
  to: string,
  look: () => Promise<T>,
): Promise<T> {
  // The begin and the end of a backup must share one connection.
  const client = new pg.Client(admin);
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(`SELECT pg_backup_start('copy', true)`);
    const left = /(postmaster\.(pid|opts)|standby\.signal|\/pg_wal\/.+|\/pg_replslot\/.+)$/;
    await copyTree(from, to, (path) => !left.test(path));
    const seen = await look();
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
    await copyTree(join(from, 'pg_wal'), join(to, 'pg_wal'), () => true);
    mkdirSync(join(to, 'pg_replslot'), { recursive: true });
    writeFileSync(join(to, 'backup_label'), rows[0]?.labelfile ?? '');
    return seen;
  } finally {
    await client.end();
  }
}

/**
 * Copies the files of a folder whose files may vanish meanwhile; leaves them out then.
 * @param isWanted decides for the path of each file and folder below `from`.
 */
async function copyTree(from: string, to: string, isWanted: (path: string) => boolean): Promise<void> {
  const { mode } = await stat(from);
  await mkdir(to, { recursive: true, mode });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [path, copy] = [join(from, entry.name), join(to, entry.name)];
    if (!isWanted(path)) continue;
    try {
      await (entry.isDirectory() ? copyTree(path, copy, isWanted) : copyFile(path, copy));
    } catch (error) {
      // The vanished file is `path` itself, or lies in it. A folder of the copy that is missing is an error.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || existsSync(path)) throw error;
    }
  }
}
