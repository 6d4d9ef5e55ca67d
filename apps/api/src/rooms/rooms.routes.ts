import {
  presentOperation,
  presentRoom,
  ROOM_MAX_PARTICIPANTS_DEFAULT,
  ROOM_MAX_PARTICIPANTS_MAX,
  ROOM_NAME_LENGTH_MAX,
  ROOM_STATUSES,
} from '@callplane/core';
import type { DueEndpoint } from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineList, idOf } from '../http/cursor.js';
import { idempotently } from '../http/idempotency.js';
import { defineRoute, type Reply, type Route } from '../http/route.js';
import {
  exactText,
  metadata,
  metadataObject,
  oneOf,
  orNull,
  page,
  pageQuery,
  pathId,
  strictObject,
  timestamp,
  trimmedText,
} from '../http/schemas.js';
import { answerOperation, OPERATION_ANSWERS, OperationSchema } from '../operations/operations.js';
import {
  changeRoom,
  createRoom,
  createRoomIn,
  endRoom,
  pageOfRooms,
  readRoom,
  readRoomOperation,
  roomAtCreation,
  type CreatedRoom,
  type GeneratedRoomValues,
} from './rooms.service.js';

export const RoomSchema = Type.Object(
  {
    id: Type.String({ description: 'Room identifier, `room_…`.' }),
    projectId: Type.String(),
    environmentId: Type.String(),
    name: Type.String(),
    metadata: metadata(),
    status: oneOf(
      ROOM_STATUSES,
      '`created` → `active` (a participant joined) → `ending` (the end was accepted) → `ended` (the clean-up is complete).',
    ),
    maxParticipants: Type.Integer(),
    createdAt: timestamp('When the room was created.'),
    startedAt: orNull(timestamp('When the first participant joined.')),
    endedAt: orNull(timestamp('When the clean-up of the ended room was complete.')),
  },
  { title: 'Room', additionalProperties: false },
);

export const RoomPath = Type.Object({ roomId: pathId("Room in the key's environment.") });

const CreateRoomBody = strictObject(
  {
    name: trimmedText(ROOM_NAME_LENGTH_MAX, 'Name of the room.'),
    metadata: Type.Optional(metadataObject('Application-defined.')),
    maxParticipants: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: ROOM_MAX_PARTICIPANTS_MAX,
        default: ROOM_MAX_PARTICIPANTS_DEFAULT,
        description: 'Maximum number of participants that are connected at the same time.',
      }),
    ),
  },
  { title: 'CreateRoom' },
);

const UpdateRoomBody = strictObject(
  {
    name: Type.Optional(trimmedText(ROOM_NAME_LENGTH_MAX, 'Name of the room.')),
    metadata: Type.Optional(metadataObject('Replaces the metadata.', {})),
    maxParticipants: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: ROOM_MAX_PARTICIPANTS_MAX,
        description:
          'Maximum number of participants that are connected at the same time. A number below the present one removes ' +
          'no participant: joins are refused until enough have left.',
      }),
    ),
  },
  { title: 'UpdateRoom' },
);

const ListRoomsQuery = Type.Object({
  status: Type.Optional(oneOf(ROOM_STATUSES)),
  name: Type.Optional(exactText(ROOM_NAME_LENGTH_MAX, 'Returns only rooms with exactly this name.')),
  namePrefix: Type.Optional(
    exactText(
      ROOM_NAME_LENGTH_MAX,
      'Returns only rooms whose names begin with this text, in the order of their names instead of newest first.',
    ),
  ),
  ...pageQuery(),
});
const ROOM_LIST = defineList('rooms', { id: idOf('room') });

const RoomPage = page('RoomPage', RoomSchema);

export function roomRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'post',
      path: '/v1/rooms',
      operationId: 'createRoom',
      summary: 'Create a room',
      description: 'Creating a room joins no participant and opens no media devices. Issue participant tokens next.',
      tag: 'Rooms',
      scope: 'rooms:create',
      idempotent: true,
      body: CreateRoomBody,
      responses: { 201: { description: 'The room.', schema: RoomSchema } },
      async handle({ caller, body, bodyAsSent, idempotencyKey }) {
        // Stays empty for a repeated request, which runs only `answer`, with the values of the first one.
        let deliveries: DueEndpoint[] = [];
        const make = async (creating: Promise<CreatedRoom>): Promise<GeneratedRoomValues> => {
          const created = await creating;
          ({ deliveries } = created);
          return created.made;
        };
        const answer = (made: GeneratedRoomValues): Reply => ({
          status: 201,
          body: presentRoom(caller, roomAtCreation(body, made)),
        });
        const reply =
          idempotencyKey === null
            ? answer(await make(createRoom(deps, caller, body)))
            : await idempotently(
                deps,
                caller,
                { route: 'POST /v1/rooms', key: idempotencyKey, body: bodyAsSent },
                { make: (tx) => make(createRoomIn(deps, tx, caller, body)), answer },
              );
        void deps.producer.wakeDeliveries(deliveries);
        return reply;
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/rooms',
      operationId: 'listRooms',
      summary: 'List rooms, newest first',
      tag: 'Rooms',
      scope: 'rooms:read',
      query: ListRoomsQuery,
      list: ROOM_LIST,
      responses: { 200: { description: 'One page of rooms.', schema: RoomPage } },
      async handle({ caller, query, cursor }) {
        const { rows, nextCursor } = await pageOfRooms(deps, caller, query, cursor);
        return { status: 200, body: { data: rows.map((room) => presentRoom(caller, room)), nextCursor } };
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}',
      operationId: 'readRoom',
      summary: 'Read a room',
      tag: 'Rooms',
      scope: 'rooms:read',
      params: RoomPath,
      responses: { 200: { description: 'The room.', schema: RoomSchema } },
      errors: ['ROOM_NOT_FOUND'],
      async handle({ caller, params }) {
        return { status: 200, body: presentRoom(caller, await readRoom(deps, caller, params.roomId)) };
      },
    }),
    defineRoute({
      method: 'patch',
      path: '/v1/rooms/{roomId}',
      operationId: 'updateRoom',
      summary: 'Change a room',
      description:
        'Changes the given fields, also in a running call, and writes `room.updated`. A request that changes nothing ' +
        'writes no event.',
      tag: 'Rooms',
      scope: 'rooms:update',
      params: RoomPath,
      body: UpdateRoomBody,
      responses: { 200: { description: 'The room.', schema: RoomSchema } },
      errors: ['ROOM_NOT_FOUND', 'ROOM_ENDED'],
      async handle({ caller, params, body }) {
        return { status: 200, body: presentRoom(caller, await changeRoom(deps, caller, params.roomId, body)) };
      },
    }),
    defineRoute({
      method: 'delete',
      path: '/v1/rooms/{roomId}',
      operationId: 'endRoom',
      summary: 'End a room for everyone',
      description:
        'Disconnects all participants and removes live media resources, as a durable operation. Repeating the ' +
        'request never creates a second operation. After a failure, it starts a new run of the same operation.',
      tag: 'Rooms',
      scope: 'rooms:end',
      prefers: true,
      params: RoomPath,
      responses: OPERATION_ANSWERS,
      errors: ['ROOM_NOT_FOUND'],
      async handle(call) {
        const { caller, params } = call;
        const accepted = await endRoom(deps, caller, params.roomId);
        return answerOperation(deps, params.roomId, accepted, call);
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}/runtime-operation',
      operationId: 'readRoomOperation',
      summary: 'Read the clean-up of a room',
      tag: 'Rooms',
      scope: 'rooms:read',
      params: RoomPath,
      responses: { 200: { description: 'The operation.', schema: OperationSchema } },
      errors: ['ROOM_NOT_FOUND', 'OPERATION_NOT_FOUND'],
      async handle({ caller, params }) {
        return { status: 200, body: presentOperation(await readRoomOperation(deps, caller, params.roomId)) };
      },
    }),
  ];
}
