import { PublicError, type DeliveryStatus, type EventType, type Tenant } from '@callplane/core';
import {
  findDelivery,
  findEventBody,
  listAttempts,
  listDeliveries,
  replayDelivery,
  webhookEndpointExisted,
  type AttemptRow,
  type DeliveryRow,
  type ReplayResult,
} from '@callplane/db';
import type { Deps } from '../deps.js';
import { decodeCursor } from '../http/cursor.js';
import { cutPage, type Page } from '../http/pages.js';
import { PAGE_LIMIT_DEFAULT } from '../http/schemas.js';
import { wakeDeliveries } from './wake-deliveries.js';

export async function pageOfDeliveries(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  endpointId: string,
  query: { status?: DeliveryStatus; eventType?: EventType; limit?: number; cursor?: string },
): Promise<Page<DeliveryRow>> {
  const { prisma } = deps.database;
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const [beforeId = null] = query.cursor === undefined ? [] : decodeCursor(query.cursor);
  const deliveries = await listDeliveries(prisma, tenant, endpointId, {
    status: query.status ?? null,
    eventType: query.eventType ?? null,
    beforeId,
    limit: limit + 1,
  });
  if (deliveries.length === 0 && !(await webhookEndpointExisted(prisma, tenant, endpointId)))
    throw new PublicError('WEBHOOK_NOT_FOUND');
  return cutPage('deliveries', deliveries, limit);
}

/** Found under the id of an endpoint that was deleted, too. */
export async function readDelivery(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  endpointId: string,
  deliveryId: string,
): Promise<DeliveryRow> {
  const { prisma } = deps.database;
  const delivery = await findDelivery(prisma, tenant, endpointId, deliveryId);
  if (delivery !== null) return delivery;
  if (!(await webhookEndpointExisted(prisma, tenant, endpointId))) throw new PublicError('WEBHOOK_NOT_FOUND');
  throw new PublicError('DELIVERY_NOT_FOUND');
}

export interface DeliveryDetail {
  delivery: DeliveryRow;
  /** The event's JSON text, as it is sent. */
  eventBody: string;
  lastAttempt: AttemptRow | null;
}

/** All that answers "why did it fail?". */
export async function readDeliveryDetail(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  endpointId: string,
  deliveryId: string,
): Promise<DeliveryDetail> {
  const delivery = await readDelivery(deps, tenant, endpointId, deliveryId);
  const [eventBody, [lastAttempt = null]] = await Promise.all([
    findEventBody(deps.database.prisma, tenant, delivery.eventId),
    listAttempts(deps.database.prisma, deliveryId, { beforeId: null, limit: 1 }),
  ]);
  // Retention has taken the delivery since it was read, and its event with it.
  if (eventBody === null) throw new PublicError('DELIVERY_NOT_FOUND');
  return { delivery, eventBody, lastAttempt };
}

export async function pageOfAttempts(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  path: { endpointId: string; deliveryId: string },
  query: { limit?: number; cursor?: string },
): Promise<Page<AttemptRow>> {
  await readDelivery(deps, tenant, path.endpointId, path.deliveryId);
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const [beforeId = null] = query.cursor === undefined ? [] : decodeCursor(query.cursor);
  const attempts = await listAttempts(deps.database.prisma, path.deliveryId, { beforeId, limit: limit + 1 });
  return cutPage('attempts', attempts, limit);
}

/** Starts a new run of a finished delivery, with the endpoint's present URL and secret. */
export async function replay(
  deps: Pick<Deps, 'database' | 'producer' | 'logger'>,
  tenant: Tenant,
  path: { endpointId: string; deliveryId: string },
  expectedReplayCount: number,
): Promise<DeliveryRow> {
  const result = await deps.database.transaction((tx) =>
    replayDelivery(tx, tenant, path.endpointId, path.deliveryId, expectedReplayCount),
  );
  if (!result.ok) throw refusal(result);
  wakeDeliveries(deps, [result.wake]);
  return result.delivery;
}

function refusal(result: ReplayResult & { ok: false }): PublicError {
  switch (result.conflict) {
    case 'no endpoint':
      return new PublicError('WEBHOOK_NOT_FOUND');
    case 'no delivery':
      return new PublicError('DELIVERY_NOT_FOUND');
    case 'REPLAY_COUNT_MISMATCH':
      return new PublicError(result.conflict, {
        details: [{ path: 'body.expectedReplayCount', message: `the replay count is ${result.replayCount}` }],
      });
    default:
      return new PublicError(result.conflict);
  }
}
