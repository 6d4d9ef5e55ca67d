import { DELIVERY_STATUSES, formatTimestamp, type DeliveryStatus } from '@callplane/core';
import {
  findDeliveryById,
  findDeliveryDetail,
  listAllDeliveries,
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

/** More attempts than two runs can have. */
const ATTEMPTS_SHOWN = 20;

const WHY_NOT = {
  'no endpoint': 'its endpoint was deleted',
  'no delivery': 'it no longer exists',
  REPLAY_COUNT_MISMATCH: 'it was replayed at the same time',
  DELIVERY_NOT_TERMINAL: 'it is not finished and is retried automatically',
  EVENT_ERASED: 'the personal data in its event was erased',
  REPLAY_LIMIT_REACHED: 'it has reached the maximum number of replays',
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
    .addOption(new Option('--status <status>', 'filter by this value').choices(DELIVERY_STATUSES))
    .option('--endpoint <id>', 'filter by endpoint (whep_…)')
    .option('--env <id>', 'filter by environment (env_…)')
    .option('--limit <count>', 'maximum number of rows, 1 to 1000', parseLimit, LIST_LIMIT_DEFAULT)
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
  const showDescription = 'Show a delivery with its latest attempts';
  addCommand(deliveries, 'show <delivery>', showDescription, 'rtc deliveries show dlv_01…').action(
    (deliveryId: string, options: OutputOptions) => show(cli, options, deliveryId),
  );
  const replayDescription = 'Replay a finished delivery, as a new run to the current URL';
  addCommand(deliveries, 'replay <delivery>', replayDescription, 'rtc deliveries replay dlv_01…').action(
    (deliveryId: string, options: OutputOptions) => replay(cli, options, deliveryId),
  );
  return deliveries;
}

function show(cli: Cli, options: OutputOptions, deliveryId: string): Promise<void> {
  return withDatabase(cli, async (database) => {
    const listing = await deliveryOf(database, deliveryId);
    const detail = await findDeliveryDetail(database.sql, listing, listing.endpointId, deliveryId, ATTEMPTS_SHOWN);
    if (detail === null) throw noDelivery(deliveryId);
    const { delivery, attempts } = detail;
    const facts = [
      ['delivery', deliveryId],
      ['event', `${delivery.eventType} ${delivery.eventId}`],
      ['endpoint', `${delivery.endpointId} ${quoted(delivery.url)}`],
      ['status', delivery.failureReason === null ? delivery.status : `${delivery.status}: ${delivery.failureReason}`],
      ['replays', String(delivery.replayCount)],
      ['attempts', `${delivery.attempts} of this run`],
      ...(delivery.nextAttemptAt === null ? [] : [['next', formatTimestamp(delivery.nextAttemptAt)]]),
    ];
    const text = [align(facts), ...(attempts.length === 0 ? [] : ['', align(attempts.map(attemptColumns))])].join('\n');
    print(cli, options, { ...listing, ...delivery, recentAttempts: attempts }, text);
  });
}

function replay(cli: Cli, options: OutputOptions, deliveryId: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const { endpointId, replayCount, projectId, environmentId } = await deliveryOf(database, deliveryId);
    const tenant = { projectId, environmentId };
    const result = await database.transaction((tx) => replayDelivery(tx, tenant, endpointId, deliveryId, replayCount));
    if (!result.ok) throw new CommandError(`${deliveryId} cannot be replayed: ${WHY_NOT[result.conflict]}.`);
    const notified = await wakeDeliveries(config, [result.wake]);
    const text = `${deliveryId} is pending again (replay ${result.delivery.replayCount})${notified ? '' : '; a sweep finds it within 15 seconds'}.`;
    print(cli, options, { id: deliveryId, replayCount: result.delivery.replayCount, workersNotified: notified }, text);
  });
}

async function deliveryOf(database: Database, deliveryId: string) {
  const listing = await findDeliveryById(database.prisma, deliveryId);
  if (listing === null) throw noDelivery(deliveryId);
  return listing;
}

function noDelivery(deliveryId: string): UsageError {
  return new UsageError(`Delivery ${quoted(deliveryId)} not found. "rtc deliveries list" lists deliveries.`);
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
