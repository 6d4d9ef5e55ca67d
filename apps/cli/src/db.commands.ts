import {
  applyMigrations,
  createMigration,
  diffMigrations,
  grantGatewayRights,
  grantMediaAgentRights,
  pendingMigrations,
  resolveMigration,
} from '@callplane/migrations';
import { formatTimestamp } from '@callplane/core';
import { readOldestSnapshots, readTableHealth, type TableHealth } from '@callplane/db';
import { Command } from 'commander';
import { parseMigrationName } from './arguments.js';
import { configOf, targetOf, withDatabase, type Cli } from './cli.js';
import { describeSnapshot } from './doctor/health-findings.js';
import { CommandError, UsageError } from './failure.js';
import { addCommand, column, print, tableOf, type OutputOptions } from './output.js';

interface DiffOptions extends OutputOptions {
  check?: true;
  name?: string;
}

interface ResolveOptions extends OutputOptions {
  applied?: true;
  rolledBack?: true;
}

export function dbCommands(cli: Cli): Command {
  const db = new Command('db').description('The database schema');
  addCommand(db, 'migrate', 'Apply pending migrations', 'rtc db migrate').action(async (options: OutputOptions) => {
    const config = configOf(cli);
    const target = targetOf(config);
    const { GATEWAY_DATABASE_URL: gatewayUrl, MEDIA_DATABASE_URL: mediaUrl } = config;
    const report = (line: string): void => cli.note?.(`${line}\n`);
    const applied = await applyMigrations({ ...target, ...(options.json === true ? {} : { report }) });
    const lines = applied.length === 0 ? ['No pending migrations.'] : applied.map((name) => `Applied ${name}`);
    const gatewayRole = gatewayUrl === undefined ? null : await grantGatewayRights({ ...target, gatewayUrl });
    if (gatewayRole !== null) lines.push(`The role ${gatewayRole} has the rights of the gateway`);
    const mediaRole = mediaUrl === undefined ? null : await grantMediaAgentRights({ ...target, mediaUrl });
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
      print(cli, options, { tables, snapshots }, [tableOf(cli, tables, TABLE_COLUMNS), ...held].join('\n'));
    }),
  );
  const diffDescription = 'Print the SQL that leads from the migrations to schema.prisma (needs CREATEDB)';
  addCommand(db, 'diff', diffDescription, 'rtc db diff --check')
    .option('--check', 'exit with 1 when there is a difference')
    .option('--name <name>', 'write it as a new migration of this name', parseMigrationName)
    .action((options: DiffOptions) => diff(cli, options));
  const resolveExample = 'rtc db resolve 20270101000000_add_webhooks --rolled-back';
  addCommand(db, 'resolve <migration>', 'Record the outcome of a migration that failed halfway', resolveExample)
    .option('--applied', 'the migration is completely applied')
    .option('--rolled-back', 'the migration is completely undone: "rtc db migrate" applies it again')
    .action((name: string, options: ResolveOptions) => resolve(cli, name, options));
  return db;
}

const TABLE_COLUMNS = [
  column<TableHealth>('TABLE', ({ table }) => table),
  column<TableHealth>(
    'LIVE',
    ({ liveRows }) => String(liveRows),
    ({ liveRows }) => `${liveRows} live`,
  ),
  column<TableHealth>(
    'DEAD',
    ({ deadRows }) => String(deadRows),
    ({ deadRows }) => `${deadRows} dead`,
  ),
  column<TableHealth>('SIZE', ({ bytes }) => `${(bytes / 1_048_576).toFixed(1)} MiB`),
  column<TableHealth>(
    'VACUUMED',
    ({ vacuumedAt }) => (vacuumedAt === null ? 'never' : formatTimestamp(vacuumedAt)),
    ({ vacuumedAt }) => `vacuumed ${vacuumedAt === null ? 'never' : formatTimestamp(vacuumedAt)}`,
  ),
];

async function diff(cli: Cli, options: DiffOptions): Promise<void> {
  if (options.check === true && options.name !== undefined) throw new UsageError('Give --check or --name, not both.');
  const target = targetOf(configOf(cli));
  if (options.name !== undefined) {
    const path = await createMigration({ ...target, name: options.name, now: cli.clock.now() });
    print(
      cli,
      options,
      { drift: path !== null, path },
      path === null ? 'No difference, nothing written.' : `Wrote ${path}`,
    );
    return;
  }
  const { drift, sql } = await diffMigrations(target);
  print(cli, options, { drift, sql }, drift ? sql.trimEnd() : 'No difference.');
  if (drift && options.check === true) {
    throw new CommandError('The migrations do not lead to schema.prisma: run "rtc db diff --name <what_changed>".');
  }
}

async function resolve(cli: Cli, name: string, options: ResolveOptions): Promise<void> {
  if ((options.applied === true) === (options.rolledBack === true)) {
    throw new UsageError('Give either --applied or --rolled-back.');
  }
  const outcome = options.applied === true ? 'applied' : 'rolled-back';
  await resolveMigration({ ...targetOf(configOf(cli)), name, outcome });
  print(cli, options, { name, outcome }, `Migration ${name} counts as ${outcome}.`);
}
