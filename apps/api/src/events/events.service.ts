import { PublicError, type EventType, type Tenant } from '@callplane/core';
import {
  findEventPosition,
  listEvents,
  listRoomEvents,
  roomExists,
  type EventPosition,
  type EventRow,
} from '@callplane/db';
import type { Deps } from '../deps.js';
import type { PageCursor } from '../http/cursor.js';
import type { Page } from '../http/pages.js';
import { PAGE_LIMIT_DEFAULT } from '../http/schemas.js';
import { EVENT_LIST } from './events.schemas.js';

export interface EventsQuery {
  roomId?: string;
  type?: EventType;
  after?: string;
  limit?: number;
}

/**
 * Reads events after a position, oldest first. A page with events always has a next cursor, so that a poller can
 * continue after its last event. A client that follows cursors to the end stops at the first empty page.
 */
export async function pageOfEvents(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  query: EventsQuery,
  cursor: PageCursor<EventPosition>,
): Promise<Page<EventRow>> {
  const { prisma, sql } = deps.database;
  const after = cursor.position ?? (query.after === undefined ? null : await positionOf(deps, tenant, query.after));
  if (query.roomId !== undefined && after !== null && after.roomId !== query.roomId) throw noCursor();
  const page = { type: query.type ?? null, limit: query.limit ?? PAGE_LIMIT_DEFAULT };
  const events =
    query.roomId === undefined
      ? await listEvents(sql, tenant, { ...page, after })
      : await listRoomEvents(sql, tenant, query.roomId, { ...page, afterSequence: after?.sequence ?? 0 });
  const last = events.at(-1);
  // Check for the room only if there are no events: events may outlive their room, and a room may have no events left.
  if (last === undefined && query.roomId !== undefined && !(await roomExists(prisma, tenant, query.roomId))) {
    throw new PublicError('ROOM_NOT_FOUND');
  }
  return { rows: events, nextCursor: last === undefined ? null : cursor.encode(last) };
}

/** Finds the position of an event id. The id works until retention deletes the event. */
async function positionOf(deps: Pick<Deps, 'database'>, tenant: Tenant, eventId: string): Promise<EventPosition> {
  const position = await findEventPosition(deps.database.sql, tenant, eventId);
  if (position === null) throw noCursor();
  return position;
}

function noCursor(): PublicError {
  return new PublicError('VALIDATION_FAILED', { details: [{ path: 'query.after', message: EVENT_LIST.refusal }] });
}
