import { setTimeout as delay } from 'node:timers/promises';
import { newId, RECOVERIES_PENDING_MAX, RECOVERY_STATUSES, type RecoveryStatus, type Tenant } from '@callplane/core';
import {
  cancelRecovery,
  findRecoveryById,
  insertRecovery,
  listAllRecoveries,
  tenantOfEnvironment,
  tenantOfWebhookEndpoint,
  type Database,
  type RecoveryListing,
} from '@callplane/db';
import { Command } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import {
  ENDPOINT_FILTER,
  filterOf,
  NEWEST,
  notFound,
  oneOf,
  timeOf,
  type NewestOptions,
  type Since,
} from './options.js';
import { addCommand, addList, print, type OutputOptions } from './output.js';
import { align } from './terminal.js';

export interface RecoverOptions extends OutputOptions {
  since: Since;
  until?: Since;
  failedOnly?: true;
  dryRun?: true;
}

/** How long `rtc webhooks recover` waits for a worker to carry the recovery out. */
const WAIT_MS = 10_000;
const LOOK_EVERY_MS = 100;

export function recoveriesCommands(cli: Cli): Command {
  const recoveries = new Command('recoveries').description('Recoveries of webhook deliveries ("rtc webhooks recover")');
  addList(recoveries, cli, {
    description: 'List recoveries, newest first',
    example: 'rtc recoveries list --status pending',
    filters: [...NEWEST, oneOf('--status <status>', RECOVERY_STATUSES), ENDPOINT_FILTER],
    rows: ({ prisma }, options: NewestOptions & { status?: RecoveryStatus; endpoint?: string }) => {
      const { status = null, endpoint = null } = options;
      return listAllRecoveries(prisma, { ...filterOf(cli, options), status, endpointId: endpoint });
    },
    columns: {
      RECOVERY: (row) => row.id,
      STATUS: (row) => (row.dryRun ? `${row.status} (dry run)` : row.status),
      ENDPOINT: (row) => row.endpointId,
      SINCE: (row) => row.since,
      UNTIL: (row) => row.until,
      MATCHED: (row) => row.matched,
      REPLAYED: (row) => row.replayed,
      WOKEN: (row) => row.woken,
      SKIPPED: (row) => row.skipped,
    },
  });
  addCommand(recoveries, 'show <recovery>', 'Show the progress of a recovery', 'rtc recoveries show rcv_01…').action(
    (recoveryId: string, options: OutputOptions) =>
      withDatabase(cli, async ({ prisma }) => {
        const row = await recoveryOf(prisma, recoveryId);
        print(cli, options, row, textOf(row));
      }),
  );
  const cancelDescription = 'Cancel a recovery; the deliveries that it has taken continue';
  addCommand(recoveries, 'cancel <recovery>', cancelDescription, 'rtc recoveries cancel rcv_01…').action(
    (recoveryId: string, options: OutputOptions) =>
      withDatabase(cli, async ({ prisma }) => {
        const { environmentId, endpointId } = await recoveryOf(prisma, recoveryId);
        const tenant = await tenantOfEnvironment(prisma, environmentId);
        if (tenant !== null) await cancelRecovery(prisma, tenant, endpointId, recoveryId, cli.clock.now());
        const row = await recoveryOf(prisma, recoveryId);
        print(cli, options, row, textOf(row));
      }),
  );
  return recoveries;
}

/** Creates a recovery as the API does, and waits a moment for a worker to carry it out. */
export function recover(cli: Cli, options: RecoverOptions, endpointId: string): Promise<void> {
  const now = cli.clock.now();
  const since = timeOf(options.since, now);
  const wanted = options.until === undefined ? now : timeOf(options.until, now);
  const until = wanted < now ? wanted : now;
  if (since >= until) throw new UsageError('--since must be before --until and in the past.');
  return withDatabase(cli, async (database) => {
    const tenant = await tenantOf(database, endpointId);
    const { dryRun = false, failedOnly = false } = options;
    const recovery = { id: newId('recovery'), endpointId, since, until, dryRun, includePending: !failedOnly };
    const created = await insertRecovery(database, tenant, { ...recovery, createdAt: now });
    if (created === 'not_found') throw noEndpoint(endpointId);
    if (created === 'limit') {
      throw new CommandError(
        `${RECOVERIES_PENDING_MAX} recoveries of ${endpointId} are pending. See "rtc recoveries list", and cancel one.`,
      );
    }
    const row = await settled(database.prisma, created.id);
    const hint =
      row.status === 'pending'
        ? `\nIt continues: "rtc recoveries show ${row.id}". If nothing changes, check that a webhook-worker runs, and that the endpoint is enabled.`
        : '';
    print(cli, options, row, `${textOf(row)}${hint}`);
  });
}

/** The recovery once it has ended, or as it is after {@link WAIT_MS}. */
async function settled(db: Database['prisma'], recoveryId: string): Promise<RecoveryListing> {
  const endMs = performance.now() + WAIT_MS;
  for (;;) {
    const row = await recoveryOf(db, recoveryId);
    if (row.status !== 'pending' || performance.now() >= endMs) return row;
    await delay(LOOK_EVERY_MS);
  }
}

async function recoveryOf(db: Database['prisma'], recoveryId: string): Promise<RecoveryListing> {
  const row = await findRecoveryById(db, recoveryId);
  if (row === null) throw notFound('Recovery', recoveryId, 'recoveries list');
  return row;
}

/** The tenant of an endpoint that exists. */
export async function tenantOf({ prisma }: Database, endpointId: string): Promise<Tenant> {
  const tenant = await tenantOfWebhookEndpoint(prisma, endpointId);
  if (tenant === null) throw noEndpoint(endpointId);
  return tenant;
}

export function noEndpoint(endpointId: string): UsageError {
  return notFound('Endpoint', endpointId, 'webhooks list');
}

function textOf(row: RecoveryListing): string {
  const what = row.includePending ? 'failed and pending deliveries' : 'failed deliveries';
  return align([
    ['recovery', `${row.id}${row.dryRun ? ' (only counts)' : ''}`],
    ['endpoint', row.endpointId],
    ['window', `${row.since.toISOString()} to ${row.until.toISOString()}`],
    ['status', row.status],
    ['matched', `${row.matched} ${what}`],
    ['replayed', `${row.replayed} failed ones`],
    ['woken', `${row.woken} pending ones`],
    ['skipped', String(row.skipped)],
  ]);
}
