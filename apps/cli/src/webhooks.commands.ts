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
  addCommand(webhooks, 'list', 'List endpoints, the one with the oldest due delivery first', 'rtc webhooks list')
    .option('--env <id>', 'filter by environment (env_…)')
    .option('--limit <count>', 'maximum number of rows, 1 to 1000', parseLimit, LIST_LIMIT_DEFAULT)
    .action((options: OutputOptions & { env?: string; limit: number }) =>
      withDatabase(cli, async ({ sql }) => {
        const filter = { environmentId: options.env ?? null, limit: options.limit };
        printList(cli, options, await listAllWebhookEndpoints(sql, filter), columnsOf);
      }),
    );
  addCommand(
    webhooks,
    'disable <endpoint>',
    'Disable an endpoint and hold back its deliveries',
    'rtc webhooks disable whep_01… --reason "Floods our network; please call us."',
  )
    .option('--reason <text>', 'reason that the tenant sees as disabledReason', parseReason, DISABLED_BY_OPERATOR)
    .action((endpointId: string, options: OutputOptions & { reason: string }) =>
      setEnabled(cli, options, endpointId, { enabled: false, reason: options.reason }),
    );
  addCommand(
    webhooks,
    'enable <endpoint>',
    'Enable an endpoint and send its held-back deliveries',
    'rtc webhooks enable whep_01…',
  ).action((endpointId: string, options: OutputOptions) =>
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
      throw new UsageError(`Endpoint ${quoted(endpointId)} not found. "rtc webhooks list" lists endpoints.`);
    }
    const notified = await wakeDeliveries(config, changed.deliveries);
    const text = change.enabled
      ? `${endpointId} is enabled${notified ? '' : '; held-back deliveries are sent within 15 seconds'}.`
      : `${endpointId} is disabled: its deliveries are held back.`;
    print(cli, options, presentWebhookEndpoint(changed.endpoint), text);
  });
}

function columnsOf(row: EndpointListing): string[] {
  return [
    row.id,
    row.enabled ? (row.proven ? 'enabled' : 'enabled (unproven)') : 'disabled',
    `${row.open} open`,
    row.oldestDueAt === null ? '' : `oldest due ${formatTimestamp(row.oldestDueAt)}`,
    row.failingSince === null ? '' : `failing since ${formatTimestamp(row.failingSince)}`,
    quoted(row.url),
    row.disabledReason === null ? '' : quoted(row.disabledReason),
  ];
}
