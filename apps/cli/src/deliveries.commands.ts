import { DELIVERY_STATUSES, formatTimestamp, type DeliveryStatus } from '@callplane/core';
import {
  findDelivery,
  findDeliveryById,
  listAllDeliveries,
  listAttempts,
  replayDelivery,
  type AttemptRow,
  type Database,
  type DeliveryListing,
} from '@callplane/db';
import { Command, Option } from 'commander';
import { LIST_LIMIT_DEFAULT, parseLimit } from './arguments.js';
import { wakeDeliveries, withDatabase, type Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import { addCommand, align, print, printList, quoted, type OutputOptions } from './output.js';

interface ListOptions extends OutputOptions {
  status?: DeliveryStatus;
  endpoint?: string;
  env?: string;
  limit: number;
}

/** More than two runs can have. */
const ATTEMPTS_SHOWN = 20;

const WHY_NOT = {
  'no endpoint': 'its endpoint was deleted',
  'no delivery': 'it is gone',
  REPLAY_COUNT_MISMATCH: 'somebody else has just replayed it',
  DELIVERY_NOT_TERMINAL: 'it is not finished: it is tried again by itself',
  REPLAY_LIMIT_REACHED: 'it was replayed as often as it may be',
  WEBHOOK_DISABLED: 'its endpoint is disabled: "rtc webhooks enable …" first',
} as const;

export function deliveriesCommands(cli: Cli): Command {
  const deliveries = new Command('deliveries').description('Webhook deliveries');
  addCommand(
    deliveries,
    'list',
    'List deliveries, newest first',
    'rtc deliveries list --status failed --endpoint whep_01…',
  )
    .addOption(new Option('--status <status>', 'only those').choices(DELIVERY_STATUSES))
    .option('--endpoint <id>', 'only to this endpoint (whep_…)')
    .option('--env <id>', 'only of this environment (env_…)')
    .option('--limit <count>', 'how many at most, 1 to 1000', parseLimit, LIST_LIMIT_DEFAULT)
    .action((options: ListOptions) =>
      withDatabase(cli, async ({ prisma }) => {
        const filter = {
          status: options.status ?? null,
          endpointId: options.endpoint ?? null,
          environmentId: options.env ?? null,
        };
        printList(cli, options, await listAllDeliveries(prisma, { ...filter, limit: options.limit }), columnsOf);
      }),
    );
  const showDescription = 'Show a delivery with its latest attempts: why did it fail?';
  addCommand(deliveries, 'show <delivery>', showDescription, 'rtc deliveries show dlv_01…').action(
    (deliveryId: string, options: OutputOptions) => show(cli, options, deliveryId),
  );
  const replayDescription = 'Send a finished delivery again, as a new run to the present URL';
  addCommand(deliveries, 'replay <delivery>', replayDescription, 'rtc deliveries replay dlv_01…').action(
    (deliveryId: string, options: OutputOptions) => replay(cli, options, deliveryId),
  );
  return deliveries;
}

function show(cli: Cli, options: OutputOptions, deliveryId: string): Promise<void> {
  return withDatabase(cli, async (database) => {
    const listing = await deliveryOf(database, deliveryId);
    const delivery = await findDelivery(database.prisma, listing, listing.endpointId, deliveryId);
    const attempts = await listAttempts(database.prisma, deliveryId, { beforeId: null, limit: ATTEMPTS_SHOWN });
    const facts = [
      ['delivery', deliveryId],
      ['event', `${listing.eventType} ${listing.eventId}`],
      ['endpoint', `${listing.endpointId} ${quoted(delivery?.url ?? '')}`],
      ['status', listing.failureReason === null ? listing.status : `${listing.status}: ${listing.failureReason}`],
      ['replays', String(listing.replayCount)],
      ['attempts', `${listing.attempts} of this run`],
      ...(listing.status === 'pending' ? [['next', formatTimestamp(listing.dueAt)]] : []),
    ];
    const text = [align(facts), ...(attempts.length === 0 ? [] : ['', align(attempts.map(attemptColumns))])].join('\n');
    print(cli, options, { ...listing, url: delivery?.url ?? null, recentAttempts: attempts }, text);
  });
}

function replay(cli: Cli, options: OutputOptions, deliveryId: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const { endpointId, replayCount, projectId, environmentId } = await deliveryOf(database, deliveryId);
    const tenant = { projectId, environmentId };
    const result = await database.transaction((tx) => replayDelivery(tx, tenant, endpointId, deliveryId, replayCount));
    if (!result.ok) throw new CommandError(`${deliveryId} cannot be replayed: ${WHY_NOT[result.conflict]}.`);
    const told = await wakeDeliveries(config, [result.wake]);
    const text = `${deliveryId} is sent again (replay ${result.delivery.replayCount})${told ? '' : '; a sweep finds it within 15 seconds'}.`;
    print(cli, options, { id: deliveryId, replayCount: result.delivery.replayCount, workersTold: told }, text);
  });
}

async function deliveryOf(database: Database, deliveryId: string) {
  const listing = await findDeliveryById(database.prisma, deliveryId);
  if (listing === null) {
    throw new UsageError(`There is no delivery ${quoted(deliveryId)}: "rtc deliveries list" shows those there are.`);
  }
  return listing;
}

function columnsOf(row: DeliveryListing): string[] {
  return [
    row.id,
    row.failureReason === null ? row.status : `${row.status} (${row.failureReason})`,
    row.eventType,
    row.endpointId,
    `${row.attempts} attempts`,
    `replay ${row.replayCount}`,
    row.completedAt === null ? `due ${formatTimestamp(row.dueAt)}` : `done ${formatTimestamp(row.completedAt)}`,
  ];
}

function attemptColumns(row: AttemptRow): string[] {
  return [
    `${row.replayCount}.${row.attempt}`,
    formatTimestamp(row.startedAt),
    row.outcome,
    row.statusCode === null ? (row.errorCode ?? '') : `HTTP ${row.statusCode}`,
    `${row.durationMs} ms`,
    row.address ?? '',
    row.responseBody === null || row.responseBody === '' ? '' : quoted(row.responseBody.slice(0, 80)),
  ];
}
