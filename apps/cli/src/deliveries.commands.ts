import { DELIVERY_STATUSES, formatTimestamp } from '@callplane/core';
import { listAllDeliveries, type DeliveryListing } from '@callplane/db';
import { Command, Option } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import {
  addDeliveryFilters,
  deliveryFilterOf,
  type DeliveryOptions,
  type SendAgainOptions,
} from './delivery-options.js';
import { addCommand, column, printList, type OutputOptions } from './output.js';
import { replayDeliveries, retryDeliveries } from './send-again.js';
import { showDelivery } from './show-delivery.js';

export function deliveriesCommands(cli: Cli): Command {
  const deliveries = new Command('deliveries').description('Webhook deliveries');
  const listExample = 'rtc deliveries list --status failed --reason rejected --since 2h';
  addDeliveryFilters(addCommand(deliveries, 'list', 'List deliveries, newest first', listExample))
    .addOption(new Option('--status <status>', 'filter by this value').choices(DELIVERY_STATUSES))
    .action((options: DeliveryOptions) =>
      withDatabase(cli, async ({ sql }) => {
        printList(cli, options, await listAllDeliveries(sql, deliveryFilterOf(cli, options)), COLUMNS);
      }),
    );
  const showDescription = 'Show a delivery, its latest attempts, and where the time of the last one went';
  addCommand(deliveries, 'show <delivery>', showDescription, 'rtc deliveries show dlv_01…').action(
    (deliveryId: string, options: OutputOptions) => showDelivery(cli, options, deliveryId),
  );
  const replayDescription = 'Replay a finished delivery, or all that the filters select: new runs to the current URL';
  const replayExample = 'rtc deliveries replay --endpoint whep_01… --reason rejected --since 2h --yes';
  addDeliveryFilters(addCommand(deliveries, 'replay [delivery]', replayDescription, replayExample))
    .addOption(
      new Option('--status <status>', 'filter by this value (default: failed)').choices(['succeeded', 'failed']),
    )
    .option('--yes', 'replay all deliveries that the filters select')
    .action((deliveryId: string | undefined, options: SendAgainOptions) => replayDeliveries(cli, options, deliveryId));
  const retryDescription = 'Try a pending delivery now, or all that the filters select: same runs, same attempts';
  addDeliveryFilters(
    addCommand(deliveries, 'retry [delivery]', retryDescription, 'rtc deliveries retry --endpoint whep_01… --yes'),
  )
    .option('--yes', 'try all deliveries that the filters select')
    .action((deliveryId: string | undefined, options: SendAgainOptions) => retryDeliveries(cli, options, deliveryId));
  return deliveries;
}

const whenOf = (row: DeliveryListing): string =>
  row.completedAt === null ? `due ${formatTimestamp(row.dueAt)}` : `done ${formatTimestamp(row.completedAt)}`;

const COLUMNS = [
  column<DeliveryListing>('DELIVERY', (row) => row.id),
  column<DeliveryListing>('STATUS', (row) =>
    row.failureReason === null ? row.status : `${row.status} (${row.failureReason})`,
  ),
  column<DeliveryListing>('EVENT', (row) => row.eventType),
  column<DeliveryListing>('ENDPOINT', (row) => row.endpointId),
  column<DeliveryListing>(
    'ATTEMPTS',
    (row) => String(row.attempts),
    (row) => `${row.attempts} attempts`,
  ),
  column<DeliveryListing>(
    'REPLAYS',
    (row) => String(row.replayCount),
    (row) => `replay ${row.replayCount}`,
  ),
  column<DeliveryListing>('WHEN', whenOf),
];
