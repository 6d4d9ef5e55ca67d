import { presentRoom, presentOperation } from '@callplane/core';
import { findRoomOperation, type TypedSql, type WakeableDelivery } from '@callplane/db';
import type { Deps } from '../deps.js';
import { idempotently } from '../http/idempotency.js';
import { defineRoute, type Reply, type Route } from '../http/route.js';
import { OperationSchema } from '../operations/operations.schemas.js';
import { answerOperation } from '../operations/request-operation.js';
import { wakeDeliveries } from '../webhooks/wake-deliveries.js';
import { CreateRoomBody, ListRoomsQuery, RoomPage, RoomPath, RoomSchema } from './rooms.schemas.js';
import { createRoom, endRoom, pageOfRooms, readRoom, readRoomOperation } from './rooms.service.js';

export function roomRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'post',
      path: '/v1/rooms',
      operationId: 'createRoom',
      summary: 'Create a room',
      description:
        'Creating a room does not join it and opens no media devices. The next step is to issue participant tokens.',
      tag: 'Rooms',
      scope: 'rooms:create',
      idempotent: true,
      body: CreateRoomBody,
      responses: { 201: { description: 'The room.', schema: RoomSchema } },
      async handle({ caller, body, idempotencyKey }) {
        let deliveries: WakeableDelivery[] = [];
        const create = async (db: TypedSql): Promise<Reply> => {
          const created = await createRoom(deps, db, caller, body);
          ({ deliveries } = created);
          return { status: 201, body: presentRoom(caller, created.room) };
        };
        const reply =
          idempotencyKey === null
            ? await create(deps.database.hot)
            : await idempotently(deps, caller, { route: 'POST /v1/rooms', key: idempotencyKey, body }, create);
        wakeDeliveries(deps, deliveries);
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
      responses: { 200: { description: 'One page of rooms.', schema: RoomPage } },
      async handle({ caller, query }) {
        const { rooms, nextCursor } = await pageOfRooms(deps, caller, query);
        return { status: 200, body: { data: rooms.map((room) => presentRoom(caller, room)), nextCursor } };
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
      method: 'delete',
      path: '/v1/rooms/{roomId}',
      operationId: 'endRoom',
      summary: 'End a room for everyone',
      description:
        'Disconnects everyone and removes live media resources, as a durable operation. Repeating it never makes a second ' +
        'one; repeating it after a failure starts a new run of the same operation.',
      tag: 'Rooms',
      scope: 'rooms:end',
      prefers: true,
      params: RoomPath,
      responses: {
        202: { description: 'Clean-up is pending: poll the runtime operation.', schema: OperationSchema },
        204: { description: 'Clean-up is complete.', schema: null },
      },
      errors: ['ROOM_NOT_FOUND'],
      async handle(call) {
        const { caller, params } = call;
        const accepted = await endRoom(deps, caller, params.roomId);
        return answerOperation(deps, params.roomId, accepted, call, () =>
          findRoomOperation(deps.database.prisma, caller, params.roomId),
        );
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
