import {
  DELIVERY_STATUSES,
  type DeliveryFailureReason,
  type DeliveryStatus,
  type EventType,
  type Tenant,
} from '@callplane/core';
import {
  findDeliveryById,
  listAllDeliveries,
  replayDelivery,
  retryDelivery,
  tenantOfEnvironment,
  type Database,
  type DeliveryFilter,
  type DeliveryListing,
  type ReplayResult,
  type RetryResult,
  type DueEndpoint,
} from '@callplane/db';
import { foundLater, wakeDeliveries, withDatabase, type Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import { filterOf, notFound, type NewestOptions } from './options.js';
import { print } from './output.js';

/** The filters of a list of deliveries, and of commands for many of them. */
export interface DeliveryOptions extends NewestOptions {
  status?: DeliveryStatus;
  reason?: DeliveryFailureReason;
  type?: EventType;
  endpoint?: string;
  room?: string;
}

/** The options of a command for one delivery, or for all that the filters select. */
export interface SendAgainOptions extends DeliveryOptions {
  yes?: true;
}

export function deliveryFilterOf(cli: Cli, options: DeliveryOptions): DeliveryFilter {
  return {
    ...filterOf(cli, options),
    statuses: options.status === undefined ? DELIVERY_STATUSES : [options.status],
    failureReason: options.reason ?? null,
    eventType: options.type ?? null,
    endpointId: options.endpoint ?? null,
    roomId: options.room ?? null,
  };
}

const WHY_NOT = {
  'no endpoint': 'its endpoint was deleted',
  'no delivery': 'it no longer exists',
  REPLAY_COUNT_MISMATCH: 'it was replayed at the same time',
  DELIVERY_NOT_TERMINAL: 'it is not finished; "rtc deliveries retry" tries a pending one now',
  DELIVERY_NOT_PENDING: 'it is finished; "rtc deliveries replay" sends it again',
  DELIVERY_IN_FLIGHT: 'it is being sent at this moment',
  EVENT_ERASED: 'the personal data in its event was erased',
  REPLAY_LIMIT_REACHED: 'it has reached the maximum number of replays',
  WEBHOOK_DISABLED: 'its endpoint is disabled: "rtc webhooks enable …" first',
} as const;

type Target = Tenant & Pick<DeliveryListing, 'id' | 'endpointId' | 'replayCount'>;
type Result = ReplayResult | RetryResult;

interface Verb {
  done: string;
  run(database: Database, target: Target): Promise<Result>;
}

const REPLAY: Verb = {
  done: 'replayed',
  run: (database, { id, endpointId, replayCount, ...tenant }) =>
    database.transaction((tx) => replayDelivery(tx, tenant, endpointId, id, replayCount)),
};
const RETRY: Verb = {
  done: 'retried',
  run: (database, { id, endpointId, ...tenant }) =>
    database.transaction((tx) => retryDelivery(tx, tenant, endpointId, id)),
};

/** Replays one delivery, or all finished ones that the filters select; failed ones unless `--status` says otherwise. */
export function replayDeliveries(cli: Cli, options: SendAgainOptions, deliveryId: string | undefined): Promise<void> {
  if (deliveryId === undefined) return sendMany(cli, { status: 'failed', ...options }, REPLAY);
  return sendOne(cli, options, deliveryId, REPLAY, ({ replayCount }) => `pending again (replay ${replayCount})`);
}

/** Brings the next attempt of one delivery forward, or of all pending ones that the filters select. */
export function retryDeliveries(cli: Cli, options: SendAgainOptions, deliveryId: string | undefined): Promise<void> {
  if (deliveryId === undefined) return sendMany(cli, { ...options, status: 'pending' }, RETRY);
  return sendOne(cli, options, deliveryId, RETRY, ({ attempts }) => `due now (after ${attempts} of 8 attempts)`);
}

function sendOne(
  cli: Cli,
  options: SendAgainOptions,
  deliveryId: string,
  verb: Verb,
  state: (delivery: { replayCount: number; attempts: number }) => string,
): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const found = await findDeliveryById(database.prisma, deliveryId);
    if (found === null) throw notFound('Delivery', deliveryId, 'deliveries list');
    const result = await verb.run(database, targetOf(found, found));
    if (!result.ok) throw new CommandError(`${deliveryId} cannot be ${verb.done}: ${WHY_NOT[result.conflict]}.`);
    const { replayCount, attempts } = result.delivery;
    const workersNotified = await wakeDeliveries(config, [result.wake]);
    const text = `${deliveryId} is ${state(result.delivery)}${foundLater(workersNotified)}.`;
    print(cli, options, { id: deliveryId, replayCount, attempts, workersNotified }, text);
  });
}

function sendMany(cli: Cli, options: SendAgainOptions, verb: Verb): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    if (options.endpoint === undefined && options.env === undefined && options.since === undefined) {
      throw new UsageError('Give a delivery, or select several with --endpoint, --env or --since.');
    }
    const rows = await listAllDeliveries(database.prisma, deliveryFilterOf(cli, options));
    const more = rows.length === options.limit ? ` (--limit ${options.limit})` : '';
    if (options.yes !== true && rows.length > 0) {
      throw new UsageError(
        `${rows.length} deliveries${more} would be ${verb.done}. Repeat the command with --yes. "rtc webhooks recover" sends any number, at a limited pace.`,
      );
    }
    const wakes: DueEndpoint[] = [];
    const refused: { id: string; reason: string }[] = [];
    const tenants = new Map<string, Tenant | null>();
    // Oldest first, as they would have arrived.
    for (const row of rows.reverse()) {
      const { environmentId } = row;
      if (!tenants.has(environmentId))
        tenants.set(environmentId, await tenantOfEnvironment(database.prisma, environmentId));
      const tenant = tenants.get(environmentId);
      if (tenant === null || tenant === undefined) continue;
      const result = await verb.run(database, targetOf(row, tenant));
      if (result.ok) wakes.push(result.wake);
      else refused.push({ id: row.id, reason: WHY_NOT[result.conflict] });
    }
    // One wake-up of an endpoint is enough for all its deliveries.
    const workersNotified = await wakeDeliveries(config, [
      ...new Map(wakes.map((wake) => [wake.endpointId, wake])).values(),
    ]);
    const lines = [
      `${wakes.length} deliveries${more} are ${verb.done}${foundLater(workersNotified)}.`,
      ...refused.map(({ id, reason }) => `${id} not: ${reason}.`),
    ];
    print(cli, options, { matched: rows.length, sent: wakes.length, refused, workersNotified }, lines.join('\n'));
  });
}

function targetOf({ id, endpointId, replayCount }: DeliveryListing, { projectId, environmentId }: Tenant): Target {
  return { id, endpointId, replayCount, projectId, environmentId };
}
