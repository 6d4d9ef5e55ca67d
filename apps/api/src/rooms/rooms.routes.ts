import { presentRoom, presentOperation } from '@callplane/core';
import type { DueEndpoint } from '@callplane/db';
import type { Deps } from '../deps.js';
import { idempotently } from '../http/idempotency.js';
import { defineRoute, type Reply, type Route } from '../http/route.js';
import { OperationSchema } from '../operations/operations.schemas.js';
import { answerOperation, OPERATION_ANSWERS } from '../operations/answer-operation.js';
import {
  CreateRoomBody,
  ListRoomsQuery,
  ROOM_LIST,
  RoomPage,
  RoomPath,
  RoomSchema,
  UpdateRoomBody,
} from './rooms.schemas.js';
import {
  changeRoom,
  createRoom,
  createRoomIn,
  endRoom,
  roomAtCreation,
  pageOfRooms,
  readRoom,
  readRoomOperation,
  type CreatedRoom,
  type GeneratedRoomValues,
} from './rooms.service.js';

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
