import {
  ROOM_MAX_PARTICIPANTS_DEFAULT,
  ROOM_MAX_PARTICIPANTS_MAX,
  ROOM_NAME_LENGTH_MAX,
  ROOM_STATUSES,
} from '@callplane/core';
import { Type } from 'typebox';
import {
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

export const RoomSchema = Type.Object(
  {
    id: Type.String({ description: 'Room identifier, `room_…`.' }),
    projectId: Type.String(),
    environmentId: Type.String(),
    name: Type.String(),
    metadata: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
    status: oneOf(
      ROOM_STATUSES,
      '`created` → `active` (first join) → `ending` (end accepted) → `ended` (clean-up complete).',
    ),
    maxParticipants: Type.Integer(),
    createdAt: timestamp('When the room was created.'),
    startedAt: orNull(timestamp('When the first participant joined.')),
    endedAt: orNull(timestamp('When the clean-up after its end was complete.')),
  },
  { title: 'Room', additionalProperties: false },
);

export const RoomPath = Type.Object({ roomId: pathId("Room in the key's environment.") });

export const CreateRoomBody = strictObject(
  {
    name: trimmedText(ROOM_NAME_LENGTH_MAX, 'Name of the room.'),
    metadata: Type.Optional(metadataObject('Application-defined.')),
    maxParticipants: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: ROOM_MAX_PARTICIPANTS_MAX,
        default: ROOM_MAX_PARTICIPANTS_DEFAULT,
        description: 'Participants that may be connected at once.',
      }),
    ),
  },
  { title: 'CreateRoom' },
);

export const ListRoomsQuery = Type.Object({ status: Type.Optional(oneOf(ROOM_STATUSES)), ...pageQuery('rooms') });

export const RoomPage = page('RoomPage', RoomSchema);
