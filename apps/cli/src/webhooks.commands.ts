import { formatTimestamp, presentWebhookEndpoint } from '@callplane/core';
import {
  listAllWebhookEndpoints,
  setWebhookEndpointEnabled,
  tenantOfWebhookEndpoint,
  type EndpointListing,
} from '@callplane/db';
import { Command } from 'commander';
import { LIST_LIMIT_DEFAULT, parseLimit, parseReason, parseSince } from './arguments.js';
import { wakeDeliveries, withDatabase, type Cli } from './cli.js';
import { addCommand, column, print, printList, quoted, type OutputOptions } from './output.js';
import { noEndpoint, recover, type RecoverOptions } from './recoveries.commands.js';

const DISABLED_BY_OPERATOR = 'Disabled by the operator.';

export function webhooksCommands(cli: Cli): Command {
  const webhooks = new Command('webhooks').description('Webhook endpoints');
  addCommand(webhooks, 'list', 'List endpoints, the one with the oldest due delivery first', 'rtc webhooks list')
    .option('--env <id>', 'filter by environment (env_…)')
    .option('--limit <count>', 'maximum number of rows, 1 to 1000', parseLimit, LIST_LIMIT_DEFAULT)
    .action((options: OutputOptions & { env?: string; limit: number }) =>
      withDatabase(cli, async ({ sql }) => {
        const filter = { environmentId: options.env ?? null, limit: options.limit };
        printList(cli, options, await listAllWebhookEndpoints(sql, filter), COLUMNS);
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
  addCommand(
    webhooks,
    'recover <endpoint>',
    'Send the unsuccessful deliveries of a time window now, when the receiver works again',
    'rtc webhooks recover whep_01… --since 2h --dry-run',
  )
    .requiredOption('--since <time>', 'start of the window: a duration such as 2h, or an ISO 8601 time', parseSince)
    .option('--until <time>', 'end of the window (default: now)', parseSince)
    .option('--failed-only', 'replay failed deliveries, and leave pending ones at their due times')
    .option('--dry-run', 'only count the deliveries')
    .action((endpointId: string, options: RecoverOptions) => recover(cli, options, endpointId));
  return webhooks;
}

function setEnabled(
  cli: Cli,
  options: OutputOptions,
  endpointId: string,
  change: { enabled: boolean; reason: string | null },
): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const tenant = await tenantOfWebhookEndpoint(database.sql, endpointId);
    const now = cli.clock.now();
    const changed =
      tenant === null
        ? null
        : await database.transaction((tx) => setWebhookEndpointEnabled(tx, tenant, endpointId, change, now));
    if (changed === null) {
      throw noEndpoint(endpointId);
    }
    const notified = await wakeDeliveries(config, changed.deliveries);
    const text = change.enabled
      ? `${endpointId} is enabled${notified ? '' : '; held-back deliveries are sent within 15 seconds'}.`
      : `${endpointId} is disabled: its deliveries are held back.`;
    print(cli, options, presentWebhookEndpoint(changed.endpoint), text);
  });
}

const timeOr = (time: Date | null, prefix = ''): string => (time === null ? '' : `${prefix}${formatTimestamp(time)}`);

const COLUMNS = [
  column<EndpointListing>('ENDPOINT', (row) => row.id),
  column<EndpointListing>('STATE', (row) =>
    row.enabled ? (row.proven ? 'enabled' : 'enabled (unproven)') : 'disabled',
  ),
  column<EndpointListing>(
    'OPEN',
    (row) => String(row.open),
    (row) => `${row.open} open`,
  ),
  column<EndpointListing>(
    'OLDEST DUE',
    (row) => timeOr(row.oldestDueAt),
    (row) => timeOr(row.oldestDueAt, 'oldest due '),
  ),
  column<EndpointListing>(
    'FAILING SINCE',
    (row) => timeOr(row.failingSince),
    (row) => timeOr(row.failingSince, 'failing since '),
  ),
  column<EndpointListing>('URL', (row) => quoted(row.url)),
  column<EndpointListing>('REASON', (row) => (row.disabledReason === null ? '' : quoted(row.disabledReason))),
];
