import {
  newId,
  newRoom,
  presentOperation,
  presentLiveRoom,
  PublicError,
  ROOM_NAME_LENGTH_MAX,
  ROOM_OPTIONS,
  ROOM_STATUSES,
  roomCreated,
  type LiveRoomState,
  type RoomState,
  type Tenant,
} from '@callplane/core';
import {
  acceptRoomEnd,
  type Database,
  type DueEndpoint,
  insertRooms,
  listRooms,
  roomExists,
  updateRoom,
  type RoomPatch,
  type TypedSql,
} from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import { Type, type Static } from 'typebox';
import type { Deps } from '../deps.js';
import { idOf } from '../http/cursor.js';
import { idempotently } from '../http/idempotency.js';
import { listRoute } from '../http/list-route.js';
import { defineRoute, tagged, type Reply, type Route, type UntaggedRoute } from '../http/route.js';
import {
  optionSchemas,
  exactText,
  metadata,
  metadataObject,
  namedObject,
  oneOf,
  orNull,
  pathId,
  timestamp,
  trimmedText,
} from '../http/schemas.js';
import { requireRecordable } from '../recordings/recordable.js';
import { RecordSchema } from '../recordings/recordings.schemas.js';
import { answerOperation, OPERATION_ANSWERS, OperationSchema } from '../operations/operations.js';

const OPTIONS = optionSchemas(ROOM_OPTIONS, { readsBounds: false, recording: RecordSchema });

const storedRoom = {
  id: Type.String({ description: 'Room identifier, `room_…`.' }),
  projectId: Type.String(),
  environmentId: Type.String(),
  name: Type.String(),
  metadata: metadata(),
  status: oneOf(
    ROOM_STATUSES,
    '`created` → `active` (a participant joined) → `ending` (the end was accepted) → `ended` (the clean-up is complete).',
  ),
  ...OPTIONS.read,
  createdAt: timestamp('When the room was created.'),
  startedAt: orNull(timestamp('When the first participant joined.')),
  endedAt: orNull(timestamp('When the clean-up of the ended room was complete.')),
  recordingSince: orNull(timestamp('Since when the room is recorded. Null: no recording runs.')),
};

export const RoomSchema = namedObject('Room', {
  ...storedRoom,
  participantCount: Type.Integer({
    description: 'Participants in the room at this moment, also the ones that lost their connection a moment ago.',
  }),
});

/** The room in an event of one of its participants. */
export const StoredRoomSchema = namedObject('StoredRoom', storedRoom);

export const RoomPath = Type.Object({ roomId: pathId("Room in the key's environment.") });

const CreateRoomBody = namedObject('CreateRoom', {
  name: trimmedText(ROOM_NAME_LENGTH_MAX, 'Name of the room.'),
  metadata: Type.Optional(metadataObject('Application-defined.')),
  ...OPTIONS.create,
});

const UpdateRoomBody = namedObject('UpdateRoom', {
  name: Type.Optional(trimmedText(ROOM_NAME_LENGTH_MAX, 'Name of the room.')),
  metadata: Type.Optional(metadataObject('Replaces the metadata.', {})),
  ...OPTIONS.update,
});

export function roomRoutes(deps: Deps): Route[] {
  return tagged('Rooms', [
    createRoomRoute(deps),
    listRoute(deps, {
      path: '/v1/rooms',
      operationId: 'listRooms',
      summary: 'List rooms, newest first',
      scope: 'rooms:read',
      filters: {
        status: Type.Optional(oneOf(ROOM_STATUSES)),
        name: Type.Optional(exactText(ROOM_NAME_LENGTH_MAX, 'Returns only rooms with exactly this name.')),
        namePrefix: Type.Optional(
          exactText(
            ROOM_NAME_LENGTH_MAX,
            'Returns only rooms whose names begin with this text, in the order of their names instead of newest first.',
          ),
        ),
      },
      position: { id: idOf('room') },
      item: RoomSchema,
      items: 'rooms',
      read: ({ caller, query: { status = null, name = null, namePrefix = null } }, part) =>
        listRooms(deps.reads.sql, caller, { status, name, namePrefix, ...part }),
      present: (room, { caller }) => presentLiveRoom(caller, room),
    }),
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}',
      operationId: 'readRoom',
      summary: 'Read a room',
      scope: 'rooms:read',
      params: RoomPath,
      responses: { 200: { description: 'The room.', schema: RoomSchema } },
      async handle({ caller, params }) {
        const room = await deps.statements.findRoom({ tenant: caller, id: params.roomId });
        if (room === null) throw new PublicError('ROOM_NOT_FOUND');
        return { status: 200, body: presentLiveRoom(caller, room) };
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
      scope: 'rooms:update',
      params: RoomPath,
      body: UpdateRoomBody,
      responses: { 200: { description: 'The room.', schema: RoomSchema } },
      errors: ['ROOM_ENDED', 'ROOM_ENCRYPTED', 'RECORDING_UNAVAILABLE'],
      async handle({ caller, params, body }) {
        await requireRecordable(deps, body.record);
        return { status: 200, body: presentLiveRoom(caller, await changeRoom(deps, caller, params.roomId, body)) };
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
      scope: 'rooms:end',
      prefers: true,
      params: RoomPath,
      responses: OPERATION_ANSWERS,
      async handle(call) {
        const { caller, params } = call;
        // Once this commits, the room issues no tokens and accepts no joins. A worker does the clean-up.
        const accepted = await acceptRoomEnd(deps.database, caller, params.roomId, deps.clock.now());
        if (accepted === null) throw new PublicError('ROOM_NOT_FOUND');
        return answerOperation(deps, params.roomId, accepted, call);
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}/runtime-operation',
      operationId: 'readRoomOperation',
      summary: 'Read the clean-up of a room',
      scope: 'rooms:read',
      params: RoomPath,
      responses: { 200: { description: 'The operation.', schema: OperationSchema } },
      errors: ['OPERATION_NOT_FOUND'],
      async handle({ caller, params }) {
        const { roomId } = params;
        const operation = await deps.statements.findRoomOperation({ tenant: caller, id: roomId });
        if (operation !== null) return { status: 200, body: presentOperation(operation) };
        await requireRoom(deps.reads, caller, roomId);
        throw new PublicError('OPERATION_NOT_FOUND');
      },
    }),
  ]);
}

const REFUSED_UPDATES = {
  not_found: 'ROOM_NOT_FOUND',
  room_ended: 'ROOM_ENDED',
  room_encrypted: 'ROOM_ENCRYPTED',
} as const;

/** Changes an open room. A running call follows as soon as its gateways get the notice. */
async function changeRoom(
  { database, clock, producer }: Pick<Deps, 'database' | 'clock' | 'producer'>,
  tenant: Tenant,
  roomId: string,
  patch: RoomPatch,
): Promise<LiveRoomState> {
  const update = await updateRoom(database, tenant, roomId, patch, clock.now());
  if (update.outcome !== 'updated') {
    throw new PublicError(REFUSED_UPDATES[update.outcome]);
  }
  // The request waits for neither: gateways find a change without a notice at their next resync.
  if (update.version !== null) void publishRoomChanged(producer.redis, roomId, update.version);
  void producer.wakeDeliveries(update.deliveries);
  return update.room;
}

export async function requireRoom({ prisma }: Database, tenant: Tenant, roomId: string): Promise<void> {
  if (!(await roomExists(prisma, tenant, roomId))) throw new PublicError('ROOM_NOT_FOUND');
}

function createRoomRoute(deps: Deps): UntaggedRoute {
  return defineRoute({
    method: 'post',
    path: '/v1/rooms',
    operationId: 'createRoom',
    summary: 'Create a room',
    description: 'Creating a room joins no participant and opens no media devices. Issue participant tokens next.',
    scope: 'rooms:create',
    idempotent: true,
    body: CreateRoomBody,
    responses: { 201: { description: 'The room.', schema: RoomSchema } },
    errors: ['ROOM_ENCRYPTED', 'RECORDING_UNAVAILABLE'],
    async handle({ caller, body, bodyAsSent, idempotencyKey }) {
      if (body.record != null && body.encryption === 'required') throw new PublicError('ROOM_ENCRYPTED');
      await requireRecordable(deps, body.record);
      // Stays empty if a shared statement has woken its own, and for a repeated request, which runs only `answer`.
      let deliveries: DueEndpoint[] = [];
      const make = async (tx: TypedSql | null) => {
        const made = { id: newId('room'), createdAt: deps.clock.now().toISOString() };
        const room = roomAtCreation(body, made);
        const insert = { tenant: caller, room, created: roomCreated(caller, room) };
        if (tx === null) await deps.statements.insertRoom(insert);
        else deliveries = (await insertRooms(tx, [insert])).flat();
        return made;
      };
      const answer = (made: GeneratedRoomValues): Reply => ({
        status: 201,
        body: presentLiveRoom(caller, { ...roomAtCreation(body, made), participantCount: 0 }),
      });
      const request = { route: 'POST /v1/rooms', key: idempotencyKey, body: bodyAsSent };
      const reply = await idempotently(deps, caller, request, { make, answer });
      void deps.producer.wakeDeliveries(deliveries);
      return reply;
    },
  });
}

type RoomInput = Static<typeof CreateRoomBody>;

/** The generated values of a new room; the request body supplies the others. */
interface GeneratedRoomValues {
  id: string;
  /** ISO 8601. */
  createdAt: string;
}

/**
 * The state of a room at its creation. The answer to the create request uses it, even if the room has changed since.
 */
function roomAtCreation(input: RoomInput, { id, createdAt }: GeneratedRoomValues): RoomState {
  return newRoom({ ...input, id, createdAt: new Date(createdAt) });
}
