import { DELIVERY_STATUSES } from '@callplane/core';
import { listAllDeliveries, type DeliveryListing } from '@callplane/db';
import { Command } from 'commander';
import type { Cli } from './cli.js';
import { DELIVERY_FILTERS, oneOf } from './options.js';
import { addCommand, addList, type OutputOptions } from './output.js';
import {
  deliveryFilterOf,
  replayDeliveries,
  retryDeliveries,
  type DeliveryOptions,
  type SendAgainOptions,
} from './send-again.js';
import { showDelivery } from './show-delivery.js';

export function deliveriesCommands(cli: Cli): Command {
  const deliveries = new Command('deliveries').description('Webhook deliveries');
  addList(deliveries, cli, {
    description: 'List deliveries, newest first',
    example: 'rtc deliveries list --status failed --reason rejected --since 2h',
    filters: [...DELIVERY_FILTERS, oneOf('--status <status>', DELIVERY_STATUSES)],
    rows: ({ prisma }, options: DeliveryOptions) => listAllDeliveries(prisma, deliveryFilterOf(cli, options)),
    columns: {
      DELIVERY: (row) => row.id,
      STATUS: (row) => (row.failureReason === null ? row.status : `${row.status} (${row.failureReason})`),
      EVENT: (row) => row.eventType,
      ENDPOINT: (row) => row.endpointId,
      ROOM: (row) => row.roomId,
      ANSWER: (row) => (row.lastStatusCode === null ? (row.lastErrorCode ?? '') : `HTTP ${row.lastStatusCode}`),
      ATTEMPTS: (row) => row.attempts,
      REPLAYS: (row) => row.replayCount,
      WHEN: whenOf,
    },
  });
  const showDescription = 'Show a delivery, its latest attempts, and where the time of the last one went';
  addCommand(deliveries, 'show <delivery>', showDescription, 'rtc deliveries show dlv_01…').action(
    (deliveryId: string, options: OutputOptions) => showDelivery(cli, options, deliveryId),
  );
  const replayDescription = 'Replay a finished delivery, or all that the filters select: new runs to the current URL';
  const replayExample = 'rtc deliveries replay --endpoint whep_01… --reason rejected --since 2h --yes';
  const replay = addCommand(deliveries, 'replay [delivery]', replayDescription, replayExample)
    .addOption(oneOf('--status <status>', ['succeeded', 'failed'], 'filter by this value (default: failed)'))
    .option('--yes', 'replay all deliveries that the filters select')
    .action((deliveryId: string | undefined, options: SendAgainOptions) => replayDeliveries(cli, options, deliveryId));
  const retryDescription = 'Try a pending delivery now, or all that the filters select: same runs, same attempts';
  const retryExample = 'rtc deliveries retry --endpoint whep_01… --yes';
  const retry = addCommand(deliveries, 'retry [delivery]', retryDescription, retryExample)
    .option('--yes', 'try all deliveries that the filters select')
    .action((deliveryId: string | undefined, options: SendAgainOptions) => retryDeliveries(cli, options, deliveryId));
  for (const filter of DELIVERY_FILTERS) for (const command of [replay, retry]) command.addOption(filter);
  return deliveries;
}

const whenOf = (row: DeliveryListing): string =>
  row.completedAt === null ? `due ${row.dueAt.toISOString()}` : `done ${row.completedAt.toISOString()}`;
