import {
  EXTERNAL_ID_LENGTH_MAX,
  PARTICIPANT_NAME_LENGTH_MAX,
  PARTICIPANT_STATUSES,
  PERMISSIONS,
  TOKEN_TTL_SECONDS,
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
import { RoomPath } from '../rooms/rooms.schemas.js';

/** The end of the year 9999. */
const TIME_MS_MAX = 253_402_300_799_999;

export const ParticipantSchema = Type.Object(
  {
    id: Type.String({ description: 'Participant identifier, `part_…`.' }),
    roomId: Type.String(),
    externalId: orNull(Type.String({ description: 'The `externalId` of the token request, if it had one.' })),
    name: Type.String(),
    metadata: metadata(),
    role: Type.String({ description: 'Always `participant`.' }),
    joinedAt: timestamp('When the participant first connected. Before that, when its token was issued.'),
    leftAt: orNull(
      timestamp('When the last session of the participant ended. If it never connected, when its token expired.'),
    ),
  },
  { title: 'Participant', additionalProperties: false },
);

export const ParticipantPath = Type.Object({
  ...RoomPath.properties,
  participantId: pathId('Participant in this room.'),
});

export const ListParticipantsQuery = Type.Object({
  status: Type.Optional(oneOf(PARTICIPANT_STATUSES)),
  externalId: Type.Optional(exactText(EXTERNAL_ID_LENGTH_MAX, 'Returns only participants with exactly this id.')),
  ...pageQuery(),
});
/** Ordered by the first connection, in milliseconds since 1970. */
export const PARTICIPANT_LIST = defineList('participants', {
  connectedAtMs: Type.Integer({ minimum: 0, maximum: TIME_MS_MAX }),
  id: idOf('part'),
});

export const ParticipantPage = page('ParticipantPage', ParticipantSchema);

/** Permissions in a request. */
export const permissionsGiven = Type.Array(oneOf(PERMISSIONS), {
  maxItems: PERMISSIONS.length,
  uniqueItems: true,
  contains: { const: 'room:join' },
  description: 'Permissions of the participant. Must include `room:join`.',
});

export const IssueTokenBody = strictObject(
  {
    participantName: trimmedText(PARTICIPANT_NAME_LENGTH_MAX, 'Name of the participant.'),
    permissions: Type.Optional({ ...permissionsGiven, default: ['room:join'] }),
    metadata: Type.Optional(metadataObject('Initial participant metadata.')),
    ttlSeconds: Type.Optional(
      Type.Integer({
        minimum: TOKEN_TTL_SECONDS.min,
        maximum: TOKEN_TTL_SECONDS.max,
        default: TOKEN_TTL_SECONDS.default,
        description: 'Lifetime of the token, in seconds.',
      }),
    ),
    externalId: Type.Optional(trimmedText(EXTERNAL_ID_LENGTH_MAX, 'Identifier of the user in your application.')),
  },
  { title: 'IssueToken' },
);

export const TokenSchema = Type.Object(
  {
    token: Type.String({ description: 'Bearer token (JWT, ES256) for one participant.' }),
    participantId: Type.String({ description: 'The new participant identity.' }),
    tokenId: Type.String({ description: 'Token identifier, `tok_…`.' }),
    expiresAt: timestamp("The token's `exp` as a time."),
  },
  { title: 'ParticipantToken', additionalProperties: false },
);
