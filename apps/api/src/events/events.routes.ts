import { PublicError, type Tenant } from '@callplane/core';
import {
  type EventPosition,
  type EventRow,
  findEventBody,
  findEventPosition,
  latestSequences,
  listEvents,
  listRoomEvents,
  newestEvents,
  roomExists,
} from '@callplane/db';
import type { Response } from 'express';
import type { Static } from 'typebox';
import type { Deps } from '../deps.js';
import { UNAUTHENTICATED } from '../http/authenticate.js';
import type { PageCursor } from '../http/cursor.js';
import { PAGE_LIMIT_DEFAULT } from '../http/list-route.js';
import { contextOf } from '../http/request-context.js';
import { defineRoute, type UntaggedRoute } from '../http/route.js';
import { BEFORE_ALL, roomPosition, type EventWaiter } from './event-waiter.js';
import { eventTypes, EventTypesSchema } from './event-types.js';
import { EVENT_LIST, EventPage, EventPath, EventSchema, LATEST, ListEventsQuery } from './events.schemas.js';

export function eventRoutes(deps: Deps): UntaggedRoute[] {
  let types: object | undefined;
  return [
    defineRoute({
      method: 'get',
      path: '/v1/event-types',
      operationId: 'listEventTypes',
      summary: 'List the event types',
      description: 'With the meaning, the JSON Schema and an example of each. The list changes only with the version.',
      scope: 'webhooks:read',
      responses: { 200: { description: 'All event types.', schema: EventTypesSchema } },
      handle: () => Promise.resolve({ status: 200, body: (types ??= eventTypes()) }),
    }),
    defineRoute({
      method: 'get',
      path: '/v1/events',
      operationId: 'listEvents',
      summary: 'List events, oldest first, or wait for them',
      description:
        'Each item is the body that webhooks send. With `roomId`, events are ordered by their sequence, otherwise by ' +
        'their transactions. An event appears once no older transaction is open, so an event that commits late is ' +
        'never skipped. With `wait`, the answer comes with the next event, usually within a second of its commit, or ' +
        'empty when the time is over.',
      scope: 'webhooks:read',
      query: ListEventsQuery,
      list: EVENT_LIST,
      errors: ['ROOM_NOT_FOUND'],
      responses: { 200: { description: 'One page of events after the position.', schema: EventPage } },
      async handle(call) {
        const { rows, nextCursor } = await pageOfEvents(deps, call.caller, call.query, call.cursor, call.response);
        return { status: 200, body: { data: rows.map(({ body }) => JSON.parse(body) as object), nextCursor } };
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/events/{eventId}',
      operationId: 'readEvent',
      summary: 'Read an event',
      description:
        'The body that webhooks send. Events are kept for 30 days, and as long as a delivery refers to them.',
      scope: 'webhooks:read',
      params: EventPath,
      responses: { 200: { description: 'The event.', schema: EventSchema } },
      async handle({ caller, params }) {
        const body = await findEventBody(deps.reads.prisma, caller, params.eventId);
        if (body === null) throw new PublicError('EVENT_NOT_FOUND');
        return { status: 200, body: JSON.parse(body) as object };
      },
    }),
  ];
}

type EventsQuery = Static<typeof ListEventsQuery>;
type EventsDeps = Pick<Deps, 'reads' | 'eventWaiter' | 'readLimiter'>;

/**
 * Reads events after a position, oldest first, and waits for one if the query says so. A page with events always has a
 * next cursor, so that a poller can continue after its last event. A client that follows cursors to the end stops at
 * the first empty page.
 */
async function pageOfEvents(
  deps: EventsDeps,
  tenant: Tenant,
  query: EventsQuery,
  cursor: PageCursor<EventPosition>,
  response: Response,
): Promise<{ rows: EventRow[]; nextCursor: string | null }> {
  const isLatest = query.after === LATEST;
  const after = await startOf(deps, tenant, query, cursor);
  if (query.roomId !== undefined && after !== null && after.roomId !== query.roomId) throw noCursor();
  const read = (from: EventPosition | null) =>
    deps.readLimiter.list(tenant.environmentId, () => readEvents(deps, tenant, query, from));
  let events = isLatest ? [] : await read(after);
  // Check for the room only if there are no events: events may outlive their room, and a room may have no events left.
  if (
    events.length === 0 &&
    query.roomId !== undefined &&
    !(await roomExists(deps.reads.prisma, tenant, query.roomId))
  ) {
    throw new PublicError('ROOM_NOT_FOUND');
  }
  const waitMs = (query.wait ?? 0) * 1000;
  if (events.length === 0 && waitMs > 0) {
    const wait = deps.eventWaiter.enter({ environmentId: tenant.environmentId, roomId: query.roomId ?? null });
    events = await awaitEvents(wait, after, read, waitMs, response);
  }
  const last = events.at(-1) ?? (isLatest ? after : null);
  return { rows: events, nextCursor: last === null ? null : cursor.encode(last) };
}

function readEvents(
  { reads: { prisma, sql } }: EventsDeps,
  tenant: Tenant,
  query: EventsQuery,
  after: EventPosition | null,
): Promise<EventRow[]> {
  const since = query.since === undefined || query.after !== undefined ? null : new Date(query.since);
  const page = { type: query.type ?? null, limit: query.limit ?? PAGE_LIMIT_DEFAULT, since };
  return query.roomId === undefined
    ? listEvents(sql, tenant, { ...page, after })
    : listRoomEvents(prisma, tenant, query.roomId, { ...page, afterSequence: after?.sequence ?? 0 });
}

/**
 * Waits until a read finds events or the time is over. Each read begins where the one before ended, so that a request
 * for rare events passes over the others only once.
 */
async function awaitEvents(
  wait: ReturnType<EventWaiter['enter']>,
  after: EventPosition | null,
  read: (from: EventPosition | null) => Promise<EventRow[]>,
  waitMs: number,
  response: Response,
): Promise<EventRow[]> {
  if (response.closed) wait.cancel();
  else response.once('close', () => wait.cancel());
  const context = contextOf(response);
  const deadlineMs = context.startedAtMs + waitMs;
  try {
    for (let seen = after; ;) {
      const waitsSinceMs = performance.now();
      const newest = await wait
        .next(seen, deadlineMs - waitsSinceMs)
        .finally(() => (context.waitedMs += performance.now() - waitsSinceMs));
      // The key may have been revoked meanwhile.
      if (!(await context.isKeyValid())) throw new PublicError('UNAUTHENTICATED', UNAUTHENTICATED);
      if (newest === null) return [];
      const events = await read(seen);
      if (events.length > 0) return events;
      seen = newest;
    }
  } finally {
    wait.leave();
  }
}

/** The position after which the list starts; null for its beginning. */
async function startOf(
  deps: EventsDeps,
  tenant: Tenant,
  { after, roomId }: EventsQuery,
  cursor: PageCursor<EventPosition>,
): Promise<EventPosition | null> {
  if (cursor.position !== null) return cursor.position;
  if (after === undefined) return null;
  const { prisma, sql } = deps.reads;
  if (after !== LATEST) {
    // The id works until retention deletes the event.
    const position = await findEventPosition(prisma, tenant, after);
    if (position === null) throw noCursor();
    return position;
  }
  if (roomId === undefined) {
    const { environmentId } = tenant;
    return (await newestEvents(sql, [environmentId])).get(environmentId) ?? BEFORE_ALL;
  }
  if (!(await roomExists(prisma, tenant, roomId))) throw new PublicError('ROOM_NOT_FOUND');
  return roomPosition(roomId, (await latestSequences(sql, [roomId])).get(roomId) ?? 0);
}

function noCursor(): PublicError {
  return new PublicError('VALIDATION_FAILED', { details: [{ path: 'query.after', message: EVENT_LIST.refusal }] });
}
