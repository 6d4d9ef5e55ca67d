import { randomBytes } from 'node:crypto';
import {
  ACTIVATE_IN_SECONDS_MAX,
  type EventType,
  generateSigningSecret,
  presentWebhookEndpoint,
  seal,
} from '@callplane/core';
import {
  endSecretRotation,
  findEventById,
  listAllEvents,
  listAllWebhookEndpoints,
  rotateWebhookSecret,
  setWebhookEndpointEnabled,
} from '@callplane/db';
import { Command, InvalidArgumentError } from 'commander';
import { type Cli, foundLater, masterKeysOf, wakeDeliveries, withDatabase } from './cli.js';
import { CommandError } from './failure.js';
import {
  ENV_FILTER,
  filterOf,
  LIMIT_FILTER,
  NEWEST,
  type NewestOptions,
  notFound,
  parseDuration,
  parseReason,
  parseSince,
  ROOM_FILTER,
  TYPE_FILTER,
} from './options.js';
import { addCommand, addList, type OutputOptions, print } from './output.js';
import { noEndpoint, recover, type RecoverOptions, tenantOf } from './recoveries.commands.js';
import { quoted } from './terminal.js';

const DISABLED_BY_OPERATOR = 'Disabled by the operator.';

export function webhooksCommands(cli: Cli): Command {
  const webhooks = new Command('webhooks').description('Webhook endpoints');
  addList(webhooks, cli, {
    description: 'List endpoints, the one with the oldest due delivery first',
    example: 'rtc webhooks list',
    filters: [ENV_FILTER, LIMIT_FILTER],
    rows: ({ sql }, options: OutputOptions & { env?: string; limit: number }) =>
      listAllWebhookEndpoints(sql, { environmentId: options.env ?? null, limit: options.limit }),
    columns: {
      ENDPOINT: (row) => row.id,
      STATE: (row) => (row.enabled ? (row.failing ? 'failing' : 'enabled') : 'disabled'),
      OPEN: (row) => row.open,
      'OLDEST DUE': (row) => row.oldestDueAt,
      'FAILURES SINCE': (row) => row.failingSince,
      URL: (row) => quoted(row.url),
      REASON: (row) => (row.disabledReason === null ? '' : quoted(row.disabledReason)),
    },
  });
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
  addSecretCommands(webhooks, cli);
  return webhooks;
}

function setEnabled(
  cli: Cli,
  options: OutputOptions,
  endpointId: string,
  change: { enabled: boolean; reason: string | null },
): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const tenant = await tenantOf(database, endpointId);
    const changed = await setWebhookEndpointEnabled(database, tenant, endpointId, change, cli.clock.now());
    if (changed === null) throw noEndpoint(endpointId);
    const notified = await wakeDeliveries(config, changed.deliveries);
    const text = change.enabled
      ? `${endpointId} is enabled, and its held-back deliveries are due${foundLater(notified)}.`
      : `${endpointId} is disabled: its deliveries are held back.`;
    print(cli, options, presentWebhookEndpoint(changed.endpoint), text);
  });
}

export function eventsCommands(cli: Cli): Command {
  const events = new Command('events').description('Events of every environment, as webhooks send them');
  addList(events, cli, {
    description: 'List events, newest first',
    example: 'rtc events list --room room_01… --since 1h',
    filters: [...NEWEST, ROOM_FILTER, TYPE_FILTER],
    rows: ({ prisma }, options: NewestOptions & { room?: string; type?: EventType }) => {
      const { room = null, type = null } = options;
      return listAllEvents(prisma, { ...filterOf(cli, options), roomId: room, type });
    },
    columns: {
      EVENT: (row) => row.id,
      TYPE: (row) => row.type,
      CREATED: (row) => row.createdAt,
      ROOM: (row) => row.roomId,
      SEQUENCE: (row) => row.sequence,
      ERASED: (row) => row.erasedAt,
    },
  });
  addCommand(events, 'show <event>', 'Show the body of an event', 'rtc events show evt_01…').action(
    (eventId: string, options: OutputOptions) =>
      withDatabase(cli, async ({ prisma }) => {
        const text = await findEventById(prisma, eventId);
        if (text === null) throw notFound('Event', eventId, 'events list');
        const body = JSON.parse(text) as object;
        print(cli, options, body, JSON.stringify(body, null, 2));
      }),
  );
  return events;
}

/** Time for the owner of a receiver to deploy the new secret. */
const ACTIVATE_IN_SECONDS_DEFAULT = 86_400;

function addSecretCommands(webhooks: Command, cli: Cli): void {
  const rotation = 'Give an endpoint a new signing secret, which signs once its receiver has had time to learn it';
  addCommand(webhooks, 'rotate-secret <endpoint>', rotation, 'rtc webhooks rotate-secret whep_01… --activate-in 2h')
    .option(
      '--activate-in <time>',
      'time until the new secret signs new runs, such as 24h; at most 7d, and 0 for at once (default: 24h)',
      parseActivateIn,
      ACTIVATE_IN_SECONDS_DEFAULT,
    )
    .action((endpointId: string, options: OutputOptions & { activateIn: number }) => rotate(cli, options, endpointId));
  addCommand(
    webhooks,
    'activate-secret <endpoint>',
    'Sign new runs with the next secret at once',
    'rtc webhooks activate-secret whep_01…',
  ).action((endpointId: string, options: OutputOptions) => endRotation(cli, options, endpointId, 'activate'));
  addCommand(
    webhooks,
    'cancel-rotation <endpoint>',
    'Cancel a rotation whose secret does not sign yet',
    'rtc webhooks cancel-rotation whep_01…',
  ).action((endpointId: string, options: OutputOptions) => endRotation(cli, options, endpointId, 'cancel'));
}

function rotate(cli: Cli, options: OutputOptions & { activateIn: number }, endpointId: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const masterKeys = masterKeysOf(config);
    const signingSecret = generateSigningSecret(randomBytes(32));
    const sealVersion = (version: number) => seal(masterKeys, signingSecret, `webhook-secret:${endpointId}:${version}`);
    const rotation = { sealVersion, activateInSeconds: options.activateIn };
    const tenant = await tenantOf(database, endpointId);
    const rotated = await rotateWebhookSecret(database, tenant, endpointId, rotation, cli.clock.now());
    if (rotated === null) throw noEndpoint(endpointId);
    if (rotated === 'SECRET_ROTATION_WAITS') {
      throw new CommandError(
        `A new secret of ${endpointId} waits already. Use "rtc webhooks activate-secret" or "rtc webhooks cancel-rotation" first.`,
      );
    }
    const { signingKeyVersion, nextSigningKeyVersion, nextActivatesAt } = rotated;
    const from = nextActivatesAt === null ? 'now' : nextActivatesAt.toISOString();
    const text = `Version ${nextSigningKeyVersion ?? signingKeyVersion} signs new runs of ${endpointId} from ${from} on. Its secret, shown only once:\n${signingSecret}`;
    print(cli, options, { ...presentWebhookEndpoint(rotated), signingSecret }, text);
  });
}

function endRotation(cli: Cli, options: OutputOptions, endpointId: string, end: 'activate' | 'cancel'): Promise<void> {
  return withDatabase(cli, async (database) => {
    const endpoint = await endSecretRotation(
      database,
      await tenantOf(database, endpointId),
      endpointId,
      end,
      cli.clock.now(),
    );
    if (endpoint === null) throw noEndpoint(endpointId);
    if (endpoint === 'NO_SECRET_ROTATION') throw new CommandError(`No new secret of ${endpointId} waits.`);
    const text = `Version ${endpoint.signingKeyVersion} signs new runs of ${endpointId}.`;
    print(cli, options, presentWebhookEndpoint(endpoint), text);
  });
}

/** @returns seconds */
function parseActivateIn(text: string): number {
  const seconds = text === '0' ? 0 : parseDuration(text);
  if (seconds > ACTIVATE_IN_SECONDS_MAX) throw new InvalidArgumentError('Give at most 7d.');
  return seconds;
}
