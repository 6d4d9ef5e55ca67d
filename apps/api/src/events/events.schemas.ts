import { EVENT_TYPES, PATH_ID_PATTERN } from '@callplane/core';
import { Type } from 'typebox';
import { oneOf, orNull, PAGE_LIMIT_DEFAULT, timestamp } from '../http/schemas.js';
import { TenantQuery } from '../webhooks/tenant-query.js';

/** The body of a delivery: `serialiseEvent` in core writes it. */
export const EventSchema = Type.Object(
  {
    id: Type.String({ description: 'Event identifier, `evt_…`: what you tell duplicates by.' }),
    type: oneOf(EVENT_TYPES),
    apiVersion: Type.String({ description: '`v1`.' }),
    createdAt: timestamp('When it happened.'),
    projectId: Type.String(),
    environmentId: Type.String(),
    sequence: orNull(
      Type.Integer({ description: 'Strictly increasing and without gaps per room; null for events of no room.' }),
    ),
    data: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      description: 'Names the resources, each as the API returns it.',
    }),
  },
  { title: 'Event', additionalProperties: false },
);

export const ListEventsQuery = Type.Object({
  ...TenantQuery.properties,
  roomId: Type.Optional(
    Type.String({ pattern: PATH_ID_PATTERN, description: 'Events of this room alone, by their sequence.' }),
  ),
  type: Type.Optional(oneOf(EVENT_TYPES)),
  after: Type.Optional(
    Type.String({ description: '`nextCursor` of an earlier answer, or the id of an event: what follows it.' }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: PAGE_LIMIT_DEFAULT, description: 'Events at most.' }),
  ),
});

export const EventPage = Type.Object(
  {
    data: Type.Array(EventSchema),
    nextCursor: orNull(
      Type.String({ description: 'Send it as `after` to go on, now or later; null when there is nothing new.' }),
    ),
  },
  { title: 'EventPage', additionalProperties: false },
);
