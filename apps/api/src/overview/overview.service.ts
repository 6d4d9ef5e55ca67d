import {
  DELIVERY_STATUSES,
  formatTimestamp,
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
import type { Deps } from '../deps.js';

type OverviewDeps = Pick<Deps, 'database' | 'clock'>;

/** What is live in an environment. Each part is null if the caller may not read it. */
export async function readOverview(deps: OverviewDeps, tenant: Tenant, may: { calls: boolean; webhooks: boolean }) {
  const now = deps.clock.now();
  const span = {
    since: new Date(now.getTime() - OVERVIEW_SLOTS * OVERVIEW_SLOT_SECONDS * 1000),
    slotSeconds: OVERVIEW_SLOT_SECONDS,
  };
  const [calls, webhooks] = await Promise.all([
    may.calls ? readCalls(deps, tenant, span) : null,
    may.webhooks ? readWebhooks(deps, tenant, span) : null,
  ]);
  return { at: formatTimestamp(now), calls, webhooks };
}

async function readCalls({ database: { sql } }: OverviewDeps, tenant: Tenant, span: Span) {
  const [live, joins] = await Promise.all([
    countLive(sql, tenant, OVERVIEW_ROWS_MAX + 1),
    countJoins(sql, tenant, span, OVERVIEW_ROWS_MAX + 1),
  ]);
  return {
    activeRooms: capped(live.activeRooms),
    participants: capped(live.participants),
    joins: {
      ...capped(sum(joins)),
      since: formatTimestamp(span.since),
      buckets: slots(span, (slot) => ({ count: sum(joins.filter((row) => slotOf(row) === slot)) })),
    },
  };
}

async function readWebhooks({ database: { sql } }: OverviewDeps, tenant: Tenant, span: Span) {
  const endpoints = await listOverviewEndpoints(sql, tenant);
  // The endpoints share the rows that may be read.
  const each = Math.max(1, Math.floor(OVERVIEW_ROWS_MAX / Math.max(1, endpoints.length)));
  const counts = endpoints.length === 0 ? [] : await countDeliveries(sql, tenant, span, each);
  const isCapped = endpoints.some(({ id }) => sum(counts.filter(({ endpointId }) => endpointId === id)) >= each);
  const due = endpoints.flatMap(({ oldestDueAt }) => (oldestDueAt === null ? [] : [oldestDueAt.getTime()]));
  return {
    deliveries: {
      since: formatTimestamp(span.since),
      ...outcomes(counts),
      capped: isCapped,
      buckets: slots(span, (slot) => outcomes(counts.filter((row) => slotOf(row) === slot))),
    },
    oldestDueAt: due.length === 0 ? null : formatTimestamp(new Date(Math.min(...due))),
    endpoints: {
      enabled: endpoints.filter(({ enabled }) => enabled).length,
      disabled: endpoints.filter(({ enabled }) => !enabled).length,
    },
    failingEndpoints: endpoints.filter(isFailing).sort(byDuration).map(presentFailing),
  };
}

type Failing = OverviewEndpoint & { failingSince: Date };

function isFailing(endpoint: OverviewEndpoint): endpoint is Failing {
  return endpoint.failingSince !== null;
}

function byDuration(a: Failing, b: Failing): number {
  return a.failingSince.getTime() - b.failingSince.getTime();
}

function presentFailing({ id, url, enabled, failingSince, lastFailedAt }: Failing) {
  return {
    endpointId: id,
    url,
    enabled,
    failingSince: formatTimestamp(failingSince),
    lastFailedAt: lastFailedAt === null ? null : formatTimestamp(lastFailedAt),
  };
}

function outcomes(counts: readonly DeliveryCount[]): Record<DeliveryStatus, number> {
  const of = (status: DeliveryStatus) => sum(counts.filter((row) => row.status === status));
  return Object.fromEntries(DELIVERY_STATUSES.map((status) => [status, of(status)])) as Record<DeliveryStatus, number>;
}

function slots<T extends object>({ since, slotSeconds }: Span, of: (slot: number) => T): (T & { from: string })[] {
  return Array.from({ length: OVERVIEW_SLOTS }, (_, slot) => ({
    from: formatTimestamp(new Date(since.getTime() + slot * slotSeconds * 1000)),
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
