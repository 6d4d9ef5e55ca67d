import {
  EVENT_TYPES,
  EVENT_WAIT_SECONDS_MAX,
  EVENT_WAITS_PER_ENVIRONMENT_MAX,
  PATH_ID_PATTERN,
  PERMISSIONS,
  SESSION_END_REASONS,
  type EventType,
} from '@callplane/core';
import { Type, type TProperties, type TSchema } from 'typebox';
import { defineList, idOf } from '../http/cursor.js';
import { pageLimit } from '../http/list-route.js';
import { namedObject, oneOf, orNull, pathId, timestamp } from '../http/schemas.js';
import { OperationSchema } from '../operations/operations.js';
import { OtherSession, StoredParticipantSchema, trackFields } from '../participants/participants.routes.js';
import { RecordingSchema } from '../recordings/recordings.schemas.js';
import { RoomSchema, StoredRoomSchema } from '../rooms/rooms.routes.js';
import { EndpointSchema } from '../webhooks/endpoints.schemas.js';

const sessionData = {
  room: StoredRoomSchema,
  participant: StoredParticipantSchema,
  sessionId: Type.String({ description: 'Session of the participant, `sess_…`.' }),
};

const changedData = {
  ...sessionData,
  sessionId: orNull(Type.String({ description: 'Live session of the participant, `sess_…`. Null without one.' })),
};

const trackData = {
  ...sessionData,
  track: namedObject('Track', { ...trackFields }),
};

const recordingData = { room: StoredRoomSchema, recording: RecordingSchema };

const DATA: Record<EventType, TProperties> = {
  'room.created': { room: RoomSchema },
  'room.started': { room: RoomSchema },
  'room.updated': { room: RoomSchema },
  'room.ended': { room: RoomSchema },
  'participant.joined': {
    ...sessionData,
    movedFrom: Type.Optional({ ...OtherSession, description: 'Where a move has taken the participant from.' }),
  },
  'participant.waiting': sessionData,
  'participant.admitted': changedData,
  'participant.left': {
    ...sessionData,
    reason: oneOf(SESSION_END_REASONS, 'Why the session ended.'),
    movedTo: Type.Optional({ ...OtherSession, description: 'Where a move has taken the participant, if `moved`.' }),
    waiting: Type.Optional(Type.Literal(true, { description: 'The session was in the lobby.' })),
  },
  'participant.updated': {
    ...changedData,
    permissions: Type.Array(oneOf(PERMISSIONS), { description: 'All permissions of the participant from now on.' }),
  },
  'track.published': trackData,
  'track.unpublished': trackData,
  'track.muted': trackData,
  'recording.started': recordingData,
  'recording.stopped': recordingData,
  'recording.completed': recordingData,
  'recording.failed': recordingData,
  'operation.failed': {
    operation: OperationSchema,
    room: StoredRoomSchema,
    participant: Type.Optional(StoredParticipantSchema),
  },
  'webhook.disabled': { webhook: EndpointSchema },
  'webhook.endpoint.failing': { webhook: EndpointSchema },
  'webhook.endpoint.recovered': {
    webhook: EndpointSchema,
    failedSince: timestamp('Time of the first failed attempt of the series that has ended.'),
  },
  'webhook.test': { webhook: EndpointSchema },
};

/** `room.created` → `RoomCreatedEvent` */
function titleOf(type: EventType): string {
  const words = type.split('.').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join('')}Event`;
}

export function eventSchema(type: EventType): TSchema {
  return namedObject(titleOf(type), {
    id: Type.String({ description: 'Event identifier, `evt_…`. Duplicates have the same identifier.' }),
    type: Type.Literal(type),
    apiVersion: Type.Literal('v1'),
    createdAt: timestamp('When the event happened.'),
    projectId: Type.String(),
    environmentId: Type.String(),
    sequence: orNull(
      Type.Integer({
        description: 'Strictly increasing and without gaps within a room. Null for events without a room.',
      }),
    ),
    data: Type.Object(DATA[type], {
      additionalProperties: true,
      description:
        'The resources of the event, each as the API returns it; the room of an event of a participant, a track or an ' +
        'operation without `participantCount`, the participant without `state`, `permissions` and `tracks`. Later versions may add more.',
    }),
    erasedAt: Type.Optional(
      timestamp("When the participant's personal data was erased from the event. No delivery carries this field."),
    ),
  });
}

/** The body of a delivery, with one schema per event type. `serialiseEvent` in core writes it. */
export const EventSchema = Type.Unsafe<Record<string, unknown>>({
  title: 'Event',
  description:
    'The `type` determines the content of `data`. Later versions may add types: ignore types that you do not know.',
  oneOf: EVENT_TYPES.map(eventSchema),
  discriminator: { propertyName: 'type' },
});

export const ListEventsQuery = Type.Object({
  roomId: Type.Optional(
    Type.String({
      pattern: PATH_ID_PATTERN,
      description: 'Returns only the events of this room, ordered by their sequence.',
    }),
  ),
  type: Type.Optional(oneOf(EVENT_TYPES)),
  after: Type.Optional(
    Type.String({
      description:
        '`nextCursor` of an earlier page, or the id of an event. The list starts after it. `latest` stands for the newest ' +
        'event: the answer then always has a `nextCursor`.',
    }),
  ),
  since: Type.Optional(
    timestamp('The list starts with the first event that was created at this time or later. No effect with `after`.'),
  ),
  limit: pageLimit('events'),
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: EVENT_WAIT_SECONDS_MAX,
      default: 0,
      description:
        'If there are no new events, the answer waits up to this many seconds for one. At most ' +
        `${EVENT_WAITS_PER_ENVIRONMENT_MAX} requests of an environment may wait at one instance; further ones get 429.`,
    }),
  ),
});

/** `after` for the newest event. */
export const LATEST = 'latest';

export const EventPath = Type.Object({ eventId: pathId("Event in the key's environment.") });

export const EventPage = namedObject('EventPage', {
  data: Type.Array(EventSchema),
  nextCursor: orNull(
    Type.String({
      description:
        'Send it as `after` to continue, now or later. Null if there are no new events, except after `latest`.',
    }),
  ),
});

const EVENT_ID = /^evt_[0-9a-z]{26}$/;

/** Event cursors never expire. */
export const EVENT_LIST = defineList(
  'events',
  {
    id: idOf('evt'),
    /** A 64-bit number in decimal. */
    transactionId: Type.String({ pattern: '^(0|[1-9][0-9]{0,17})$' }),
    roomId: orNull(Type.String({ pattern: PATH_ID_PATTERN })),
    sequence: orNull(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })),
  },
  {
    parameter: 'after',
    unbound: ['since', 'wait'],
    refusal: 'is neither a valid cursor for this list and its filters nor an event in it',
    takesElsewhere: (text) => text === LATEST || EVENT_ID.test(text),
  },
);
