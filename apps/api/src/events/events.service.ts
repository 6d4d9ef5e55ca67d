import { PublicError, type EventType, type Tenant } from '@callplane/core';
import { findEventPosition, listEvents, listRoomEvents, type EventPosition, type EventRow } from '@callplane/db';
import type { Deps } from '../deps.js';
import { decodeCursor, encodeCursor, isCursor } from '../http/cursor.js';
import { PAGE_LIMIT_DEFAULT } from '../http/schemas.js';

const EVENT_ID = /^evt_[0-9a-z]{26}$/;

export interface EventsQuery {
  roomId?: string;
  type?: EventType;
  after?: string;
  limit?: number;
}

/**
 * Events after a position, oldest first. There is a next cursor whenever there are events, so that a poller can go on
 * from the last one; one that follows cursors until they end stops at the first empty page.
 */
export async function pageOfEvents(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  query: EventsQuery,
): Promise<{ events: EventRow[]; nextCursor: string | null }> {
  const after = query.after === undefined ? null : await readPosition(deps, tenant, query.after);
  if (query.roomId !== undefined && after !== null && after.roomId !== query.roomId) throw noCursor();
  const { prisma } = deps.database;
  const page = { type: query.type ?? null, limit: query.limit ?? PAGE_LIMIT_DEFAULT };
  const events =
    query.roomId === undefined
      ? await listEvents(prisma, tenant, { ...page, after })
      : await listRoomEvents(prisma, tenant, query.roomId, { ...page, afterSequence: after?.sequence ?? 0 });
  const last = events.at(-1);
  return { events, nextCursor: last === undefined ? null : encodePosition(last) };
}

function encodePosition({ id, transactionId, roomId, sequence }: EventPosition): string {
  return encodeCursor('events', [id, transactionId, ...(roomId === null ? [] : [roomId, String(sequence)])]);
}

/** A cursor works after its event is gone, an event's id as long as retention keeps the event. */
async function readPosition(deps: Pick<Deps, 'database'>, tenant: Tenant, after: string): Promise<EventPosition> {
  if (isCursor('events', after)) {
    const [id = '', transactionId = '', roomId = null, sequence = null] = decodeCursor(after);
    return { id, transactionId, roomId, sequence: sequence === null ? null : Number(sequence) };
  }
  const position = EVENT_ID.test(after) ? await findEventPosition(deps.database.prisma, tenant, after) : null;
  if (position === null) throw noCursor();
  return position;
}

function noCursor(): PublicError {
  return new PublicError('VALIDATION_FAILED', {
    details: [{ path: 'query.after', message: 'is neither a cursor of this list nor an event that it has' }],
  });
}
