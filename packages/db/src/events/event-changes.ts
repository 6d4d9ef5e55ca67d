import type { EventType, Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import type { EventPosition } from './events.repository.js';

/** What a stream tells about an event. */
export interface EventChange extends EventPosition {
  type: EventType;
  participantId: string | null;
}

/**
 * Lists what has changed after a position, in the order of `listEvents`, without the bodies.
 * @param until the last event, itself included; null for all that are visible.
 */
export function listEventChanges(
  db: TypedSql,
  { environmentId }: Tenant,
  page: { after: EventPosition; until: EventPosition | null; limit: number },
): PromiseLike<EventChange[]> {
  const { after, until, limit } = page;
  return db.$queryRaw<EventChange[]>`
    SELECT id, type, room_id AS "roomId", sequence, participant_id AS "participantId",
      transaction_id::text AS "transactionId"
    FROM events
    WHERE environment_id = ${environmentId} AND (transaction_id, id) > (${after.transactionId}::bigint, ${after.id})
      AND transaction_id < (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint + callplane_transaction_offset()
      ${until === null ? Prisma.empty : Prisma.sql`AND (transaction_id, id) <= (${until.transactionId}::bigint, ${until.id})`}
    ORDER BY transaction_id, id LIMIT ${limit}`;
}
