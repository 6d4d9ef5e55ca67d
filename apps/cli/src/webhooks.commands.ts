import { formatTimestamp, presentWebhookEndpoint } from '@callplane/core';
import {
  listAllWebhookEndpoints,
  setWebhookEndpointEnabled,
  tenantOfWebhookEndpoint,
  type EndpointListing,
} from '@callplane/db';
import { Command } from 'commander';
import { LIST_LIMIT_DEFAULT, parseLimit, parseReason } from './arguments.js';
import { wakeDeliveries, withDatabase, type Cli } from './cli.js';
import { UsageError } from './failure.js';
import { addCommand, print, printList, quoted, type OutputOptions } from './output.js';

const DISABLED_BY_OPERATOR = 'Disabled by the operator.';

export function webhooksCommands(cli: Cli): Command {
  const webhooks = new Command('webhooks').description('Webhook endpoints');
  addCommand(webhooks, 'list', 'List endpoints, those furthest behind first', 'rtc webhooks list')
    .option('--env <id>', 'only of this environment (env_…)')
    .option('--limit <count>', 'how many at most, 1 to 1000', parseLimit, LIST_LIMIT_DEFAULT)
    .action((options: OutputOptions & { env?: string; limit: number }) =>
      withDatabase(cli, async ({ prisma }) => {
        const filter = { environmentId: options.env ?? null, limit: options.limit };
        printList(cli, options, await listAllWebhookEndpoints(prisma, filter), columnsOf);
      }),
    );
  addCommand(
    webhooks,
    'disable <endpoint>',
    'Hold the deliveries of an endpoint back',
    'rtc webhooks disable whep_01… --reason "Floods our network; please call us."',
  )
    .option('--reason <text>', 'what its owner reads as disabledReason', parseReason, DISABLED_BY_OPERATOR)
    .action((endpointId: string, options: OutputOptions & { reason: string }) =>
      setEnabled(cli, options, endpointId, { enabled: false, reason: options.reason }),
    );
  addCommand(webhooks, 'enable <endpoint>', 'Send what was held back', 'rtc webhooks enable whep_01…').action(
    (endpointId: string, options: OutputOptions) =>
      setEnabled(cli, options, endpointId, { enabled: true, reason: null }),
  );
  return webhooks;
}

function setEnabled(
  cli: Cli,
  options: OutputOptions,
  endpointId: string,
  change: { enabled: boolean; reason: string | null },
): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const tenant = await tenantOfWebhookEndpoint(database.prisma, endpointId);
    const now = cli.clock.now();
    const changed =
      tenant === null
        ? null
        : await database.transaction((tx) => setWebhookEndpointEnabled(tx, tenant, endpointId, change, now));
    if (changed === null) {
      throw new UsageError(`There is no endpoint ${quoted(endpointId)}: "rtc webhooks list" shows those there are.`);
    }
    const told = await wakeDeliveries(config, changed.deliveries);
    const text = change.enabled
      ? `${endpointId} is enabled${told ? '' : '; what was held back goes out within 15 seconds'}.`
      : `${endpointId} is disabled: its deliveries are held back.`;
    print(cli, options, presentWebhookEndpoint(changed.endpoint), text);
  });
}

function columnsOf(row: EndpointListing): string[] {
  return [
    row.id,
    row.enabled ? (row.proven ? 'enabled' : 'enabled (suspect)') : 'disabled',
    `${row.open} open`,
    row.oldestDueAt === null ? '' : `oldest due ${formatTimestamp(row.oldestDueAt)}`,
    row.failingSince === null ? '' : `failing since ${formatTimestamp(row.failingSince)}`,
    quoted(row.url),
    row.disabledReason === null ? '' : quoted(row.disabledReason),
  ];
}
