import { applyMigrations, grantGatewayRights, grantMediaAgentRights, pendingMigrations } from '@callplane/migrations';
import { readOldestSnapshots, readTableHealth, type TableHealth } from '@callplane/db';
import { Command } from 'commander';
import { configOf, targetOf, withDatabase, type Cli } from './cli.js';
import { describeSnapshot } from './doctor/postgres.js';
import { addCommand, print, tableOf, type Columns, type OutputOptions } from './output.js';

export function dbCommands(cli: Cli): Command {
  const db = new Command('db').description('The database schema');
  addCommand(db, 'migrate', 'Apply pending migrations', 'rtc db migrate').action(async (options: OutputOptions) => {
    const config = configOf(cli);
    const target = targetOf(config);
    const { GATEWAY_DATABASE_URL: gatewayUrl, MEDIA_DATABASE_URL: mediaUrl } = config;
    const report = (line: string): void => cli.note?.(`${line}\n`);
    const applied = await applyMigrations({ ...target, ...(options.json === true ? {} : { report }) });
    const lines = applied.length === 0 ? ['No pending migrations.'] : applied.map((name) => `Applied ${name}`);
    const gatewayRole = gatewayUrl === undefined ? null : await grantGatewayRights(target, gatewayUrl);
    if (gatewayRole !== null) lines.push(`The role ${gatewayRole} has the rights of the gateway`);
    const mediaRole = mediaUrl === undefined ? null : await grantMediaAgentRights(target, mediaUrl);
    if (mediaRole !== null) lines.push(`The role ${mediaRole} has the rights of agents beside media servers`);
    const roles = { ...(gatewayRole === null ? {} : { gatewayRole }), ...(mediaRole === null ? {} : { mediaRole }) };
    print(cli, options, { applied, ...roles }, lines.join('\n'));
  });
  addCommand(db, 'status', 'List pending migrations', 'rtc db status').action(async (options: OutputOptions) => {
    const pending = await pendingMigrations(targetOf(configOf(cli)));
    const text = pending.length === 0 ? 'Up to date.' : pending.map((name) => `Pending ${name}`).join('\n');
    print(cli, options, { pending }, text);
  });
  const tablesDescription = 'Show dead rows, size and last vacuum of the busy tables, and the oldest snapshots';
  addCommand(db, 'tables', tablesDescription, 'rtc db tables').action((options: OutputOptions) =>
    withDatabase(cli, async ({ sql }) => {
      const [tables, snapshots] = [await readTableHealth(sql), await readOldestSnapshots(sql)];
      const held = snapshots.filter(({ name }) => name !== null).map(describeSnapshot);
      print(cli, options, { tables, snapshots }, [tableOf(tables, TABLE_COLUMNS), ...held].join('\n'));
    }),
  );
  return db;
}

const TABLE_COLUMNS: Columns<TableHealth> = {
  TABLE: ({ table }) => table,
  LIVE: ({ liveRows }) => liveRows,
  DEAD: ({ deadRows }) => deadRows,
  SIZE: ({ bytes }) => `${(bytes / 1_048_576).toFixed(1)} MiB`,
  VACUUMED: ({ vacuumedAt }) => vacuumedAt ?? 'never',
};
