import { newId, newRoom, presentLiveRoom, ROOM_NAME_LENGTH_MAX, roomCreated, type RoomState } from '@callplane/core';
import { insertRooms, type DueEndpoint, type RoomToInsert } from '@callplane/db';
import { Type, type Static } from 'typebox';
import type { Deps } from '../deps.js';
import { idempotently } from '../http/idempotency.js';
import { defineRoute, tagged, type Reply, type Route } from '../http/route.js';
import { metadataObject, namedObject, trimmedText } from '../http/schemas.js';
import { requireRecordable } from '../recordings/recordable.js';
import { OPTIONS, RoomSchema } from './rooms.routes.js';

const CreateRoomBody = namedObject('CreateRoom', {
  name: trimmedText(ROOM_NAME_LENGTH_MAX, 'Name of the room.'),
  metadata: Type.Optional(metadataObject('Application-defined.')),
  ...OPTIONS.create,
});

export function createRoomRoutes(deps: Deps): Route[] {
  return tagged('Rooms', [
    defineRoute({
      method: 'post',
      path: '/v1/rooms',
      operationId: 'createRoom',
      summary: 'Create a room',
      description: 'Creating a room joins no participant and opens no media devices. Issue participant tokens next.',
      scope: 'rooms:create',
      idempotent: true,
      body: CreateRoomBody,
      responses: { 201: { description: 'The room.', schema: RoomSchema } },
      errors: ['RECORDING_UNAVAILABLE'],
      async handle({ caller, body, bodyAsSent, idempotencyKey }) {
        await requireRecordable(deps, body.record);
        // Stays empty for a repeated request, which runs only `answer`, with the values of the first one.
        let deliveries: DueEndpoint[] = [];
        const make = async (insertRoom: (insert: RoomToInsert) => Promise<DueEndpoint[]>) => {
          const made = { id: newId('room'), createdAt: deps.clock.now().toISOString() };
          const room = roomAtCreation(body, made);
          deliveries = await insertRoom({ tenant: caller, room, created: roomCreated(caller, room) });
          return made;
        };
        const answer = (made: GeneratedRoomValues): Reply => ({
          status: 201,
          body: presentLiveRoom(caller, { ...roomAtCreation(body, made), participantCount: 0 }),
        });
        const reply =
          idempotencyKey === null
            ? answer(await make(deps.statements.insertRoom))
            : await idempotently(
                deps,
                caller,
                { route: 'POST /v1/rooms', key: idempotencyKey, body: bodyAsSent },
                { make: (tx) => make(async (insert) => (await insertRooms(tx, [insert]))[0] ?? []), answer },
              );
        void deps.producer.wakeDeliveries(deliveries);
        return reply;
      },
    }),
  ]);
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
