import { randomBytes } from 'node:crypto';
import { createTestDatabase, eventually, stopAtEnd } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import pg from 'pg';
import { applyMigrations, pendingMigrations } from './migrate.js';

const adminUrl = process.env['TEST_POSTGRES_URL']!;

test('refuses a database that does not store text as UTF-8', async () => {
  const name = `ascii_${randomBytes(8).toString('hex')}`;
  const admin = await connected(adminUrl);
  await admin.query(`CREATE DATABASE ${name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0`);
  const url = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href;
  await expect(applyMigrations({ databaseUrl: url })).rejects.toThrow('The encoding of the database is SQL_ASCII.');
  expect(await pendingMigrations({ databaseUrl: url })).not.toEqual([]);
  await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
});

test('keeps events of another cluster visible and in order after a restore, and sorts new ones behind them', async () => {
  const { url: databaseUrl } = await createTestDatabase();
  const app = await connected(databaseUrl);
  await app.query(`INSERT INTO projects (id, name, created_at) VALUES ('proj', 'p', now())`);
  await app.query(`INSERT INTO environments (id, project_id, name, created_at) VALUES ('env', 'proj', 'e', now())`);
  const write = (id: string, columns = '', values = '') =>
    app.query(`INSERT INTO events (id, environment_id, type, body, created_at${columns})
      VALUES ('${id}', 'env', 'webhook.test', '{}', now()${values})`);
  const listed = async () => {
    const { rows } = await app.query<{ id: string }>(`SELECT id FROM events
      WHERE transaction_id < (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint + callplane_transaction_offset()
      ORDER BY transaction_id, id`);
    return rows.map(({ id }) => id);
  };
  const offset = async () => (await app.query('SELECT callplane_transaction_offset()::text AS at')).rows;
  await write('evt_1');
  await applyMigrations({ databaseUrl });
  expect(await offset()).toEqual([{ at: '0' }]);
  // Rows as in a dump of a cluster with higher transaction ids.
  await write('evt_2', ', transaction_id', ', 900000000000');
  await write('evt_3', ', transaction_id', ', 900000000001');
  // An event appears once no older transaction is open, and other test files have open ones.
  await eventually(async () => (await listed()).join() === 'evt_1');
  await applyMigrations({ databaseUrl });
  await write('evt_4');
  await eventually(async () => (await listed()).join() === 'evt_1,evt_2,evt_3,evt_4');
  // Raising the offset once is enough, also when a dump of this database is restored again.
  const raised = await offset();
  await applyMigrations({ databaseUrl });
  expect(await offset()).toEqual(raised);
});

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  stopAtEnd(() => client.end());
  return client;
}
