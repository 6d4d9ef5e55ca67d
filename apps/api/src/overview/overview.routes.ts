import {
  DELIVERY_STATUSES,
  mayUse,
  OVERVIEW_ROWS_MAX,
  OVERVIEW_SLOT_SECONDS,
  OVERVIEW_SLOTS,
  type DeliveryStatus,
  type Tenant,
} from '@callplane/core';
import {
  countDeliveries,
  countJoins,
  countLive,
  listOverviewEndpoints,
  type DeliveryCount,
  type OverviewEndpoint,
  type SlotCount,
  type Span,
} from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { requireScope } from '../http/authenticate.js';
import { defineRoute, tagged, type Route } from '../http/route.js';
import { namedObject, orNull, strictObject, timestamp } from '../http/schemas.js';

const count = (description: string) =>
  Type.Object(
    { count: Type.Integer(), capped: Type.Boolean({ description: 'Whether there may be more than `count`.' }) },
    { description, additionalProperties: false },
  );

const OUTCOMES = {
  pending: Type.Integer(),
  delivering: Type.Integer(),
  succeeded: Type.Integer(),
  failed: Type.Integer(),
};

const CallsOverview = namedObject('CallsOverview', {
  activeRooms: count('Rooms with at least one participant.'),
  participants: count('Participants that are in a room.'),
  joins: strictObject({
    count: Type.Integer(),
    capped: Type.Boolean({ description: 'Whether there are more: then only the newest ones are counted.' }),
    since: timestamp('Beginning of the first bucket, one hour ago.'),
    buckets: Type.Array(strictObject({ from: timestamp('Beginning of five minutes.'), count: Type.Integer() })),
  }),
});

const WebhooksOverview = namedObject('WebhooksOverview', {
  deliveries: Type.Object(
    {
      since: timestamp('Beginning of the first bucket, one hour ago.'),
      ...OUTCOMES,
      capped: Type.Boolean({ description: 'Whether there are more: then only the newest ones are counted.' }),
      buckets: Type.Array(strictObject({ from: timestamp('Beginning of five minutes.'), ...OUTCOMES })),
    },
    {
      description: 'The deliveries that were created in the last hour, by their present status.',
      additionalProperties: false,
    },
  ),
  oldestDueAt: orNull(timestamp('When the oldest delivery was due that still waits. Null: none is late.')),
  endpoints: strictObject({ enabled: Type.Integer(), disabled: Type.Integer() }),
  failingEndpoints: Type.Array(
    strictObject({
      endpointId: Type.String(),
      url: Type.String(),
      enabled: Type.Boolean(),
      failingSince: timestamp('Beginning of the present series of failures.'),
      lastFailedAt: orNull(timestamp('Latest failure, to the minute.')),
    }),
    {
      description:
        'Enabled endpoints of which all attempts have failed for 15 minutes, as `webhook.endpoint.failing` reports. The ' +
        'endpoint that fails for the longest time comes first.',
    },
  ),
  failureRates: Type.Array(strictObject({ endpointId: Type.String(), tried: Type.Integer(), failed: Type.Integer() }), {
    description:
      'How many deliveries of the last hour were tried, and of how many of these the latest attempt has failed. ' +
      'Endpoints without such deliveries are left out.',
  }),
});

const OverviewSchema = namedObject('Overview', {
  at: timestamp('Time of the figures.'),
  calls: orNull(CallsOverview),
  webhooks: orNull(WebhooksOverview),
});

export function overviewRoutes(deps: Deps): Route[] {
  return tagged('Usage', [
    defineRoute({
      method: 'get',
      path: '/v1/overview',
      operationId: 'readOverview',
      summary: 'Read the live figures',
      description:
        'Rooms, participants and joins need `rooms:read`, deliveries and endpoints `webhooks:read`. A part without its ' +
        'scope is null. No figure counts more than 10,000 rows. `GET /v1/usage` has the figures of days.',
      scope: null,
      errors: ['INSUFFICIENT_SCOPE'],
      responses: { 200: { description: 'The figures at this moment.', schema: OverviewSchema } },
      async handle({ caller }) {
        requireScope(caller, 'rooms:read', 'webhooks:read');
        const may = { calls: mayUse(caller, 'rooms:read'), webhooks: mayUse(caller, 'webhooks:read') };
        const body = await deps.readLimiter.heavy(caller.environmentId, () => readOverview(deps, caller, may));
        return { status: 200, body };
      },
    }),
  ]);
}

type OverviewDeps = Pick<Deps, 'reads' | 'clock'>;

async function readOverview(deps: OverviewDeps, tenant: Tenant, may: { calls: boolean; webhooks: boolean }) {
  const now = deps.clock.now();
  const span = {
    since: new Date(now.getTime() - OVERVIEW_SLOTS * OVERVIEW_SLOT_SECONDS * 1000),
    slotSeconds: OVERVIEW_SLOT_SECONDS,
  };
  const [calls, webhooks] = await Promise.all([
    may.calls ? readCalls(deps, tenant, span) : null,
    may.webhooks ? readWebhooks(deps, tenant, span) : null,
  ]);
  return { at: now.toISOString(), calls, webhooks };
}

async function readCalls({ reads: { sql } }: OverviewDeps, tenant: Tenant, span: Span) {
  const [live, joins] = await Promise.all([
    countLive(sql, tenant, OVERVIEW_ROWS_MAX + 1),
    countJoins(sql, tenant, span, OVERVIEW_ROWS_MAX + 1),
  ]);
  const participants = capped(live.participants);
  return {
    // Participants that are not counted may be in further rooms.
    activeRooms: { ...capped(live.rooms), capped: participants.capped },
    participants,
    joins: {
      ...capped(sum(joins)),
      since: span.since.toISOString(),
      buckets: slots(span, (slot) => ({ count: sum(joins.filter((row) => slotOf(row) === slot)) })),
    },
  };
}

async function readWebhooks({ reads: { sql } }: OverviewDeps, tenant: Tenant, span: Span) {
  const endpoints = await listOverviewEndpoints(sql, tenant);
  // The endpoints share the rows that may be read.
  const each = Math.max(1, Math.floor(OVERVIEW_ROWS_MAX / Math.max(1, endpoints.length)));
  const counts = endpoints.length === 0 ? [] : await countDeliveries(sql, tenant, span, each);
  const isCapped = endpoints.some(({ id }) => sum(counts.filter(({ endpointId }) => endpointId === id)) >= each);
  const due = endpoints.flatMap(({ oldestDueAt }) => (oldestDueAt === null ? [] : [oldestDueAt.getTime()]));
  return {
    deliveries: {
      since: span.since.toISOString(),
      ...outcomes(counts),
      capped: isCapped,
      buckets: slots(span, (slot) => outcomes(counts.filter((row) => slotOf(row) === slot))),
    },
    oldestDueAt: due.length === 0 ? null : new Date(Math.min(...due)).toISOString(),
    endpoints: {
      enabled: endpoints.filter(({ enabled }) => enabled).length,
      disabled: endpoints.filter(({ enabled }) => !enabled).length,
    },
    failingEndpoints: endpoints
      .flatMap(presentFailing)
      .sort((a, b) => a.failingSince.getTime() - b.failingSince.getTime()),
    failureRates: endpoints.map(({ id }) => failureRate(id, counts)).filter(({ tried }) => tried > 0),
  };
}

function presentFailing({ id, url, enabled, failing, failingSince, lastFailedAt }: OverviewEndpoint) {
  return !failing || failingSince === null ? [] : [{ endpointId: id, url, enabled, failingSince, lastFailedAt }];
}

function failureRate(endpointId: string, counts: readonly DeliveryCount[]) {
  const own = counts.filter((row) => row.endpointId === endpointId);
  const failed = own.reduce((total, { unsuccessful }) => total + unsuccessful, 0);
  return { endpointId, tried: failed + sum(own.filter(({ status }) => status === 'succeeded')), failed };
}

function outcomes(counts: readonly DeliveryCount[]): Record<DeliveryStatus, number> {
  const of = (status: DeliveryStatus) => sum(counts.filter((row) => row.status === status));
  return Object.fromEntries(DELIVERY_STATUSES.map((status) => [status, of(status)])) as Record<DeliveryStatus, number>;
}

function slots<T extends object>({ since, slotSeconds }: Span, of: (slot: number) => T): (T & { from: string })[] {
  return Array.from({ length: OVERVIEW_SLOTS }, (_, slot) => ({
    from: new Date(since.getTime() + slot * slotSeconds * 1000).toISOString(),
    ...of(slot),
  }));
}

/** A row that was written during the read belongs to the last slot. */
function slotOf({ slot }: SlotCount): number {
  return Math.min(slot, OVERVIEW_SLOTS - 1);
}

function sum(counts: readonly SlotCount[]): number {
  return counts.reduce((total, { count }) => total + count, 0);
}

function capped(count: number): { count: number; capped: boolean } {
  return { count: Math.min(count, OVERVIEW_ROWS_MAX), capped: count > OVERVIEW_ROWS_MAX };
}
