import {
  ROOM_MAX_PARTICIPANTS_DEFAULT,
  ROOM_MAX_PARTICIPANTS_MAX,
  ROOM_NAME_LENGTH_MAX,
  ROOM_STATUSES,
} from '@callplane/core';
import { Type } from 'typebox';
import { defineList, idOf } from '../http/cursor.js';
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

export const CreateRoomBody = strictObject(
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

export const UpdateRoomBody = strictObject(
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

export const ListRoomsQuery = Type.Object({
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
export const ROOM_LIST = defineList('rooms', { id: idOf('room') });

export const RoomPage = page('RoomPage', RoomSchema);
