import {
  EXTERNAL_ID_LENGTH_MAX,
  PARTICIPANT_NAME_LENGTH_MAX,
  PARTICIPANT_STATUSES,
  PERMISSIONS,
  TOKEN_TTL_SECONDS,
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
import { RoomPath } from '../rooms/rooms.schemas.js';

export const ParticipantSchema = Type.Object(
  {
    id: Type.String({ description: 'Participant identifier, `part_…`.' }),
    roomId: Type.String(),
    externalId: orNull(Type.String({ description: 'What the token request gave, if anything.' })),
    name: Type.String(),
    metadata: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
    role: Type.String({ description: '`participant`.' }),
    joinedAt: timestamp('First connection; until then when its token was issued.'),
    leftAt: orNull(timestamp('When its last session ended; for one that never connected, when its token expired.')),
  },
  { title: 'Participant', additionalProperties: false },
);

export const ParticipantPath = Type.Object({
  ...RoomPath.properties,
  participantId: pathId('Participant in this room.'),
});

export const ListParticipantsQuery = Type.Object({
  status: Type.Optional(oneOf(PARTICIPANT_STATUSES)),
  ...pageQuery('participants'),
});

export const ParticipantPage = page('ParticipantPage', ParticipantSchema);

export const IssueTokenBody = strictObject(
  {
    participantName: trimmedText(PARTICIPANT_NAME_LENGTH_MAX, 'Name of the participant.'),
    permissions: Type.Optional(
      Type.Array(oneOf(PERMISSIONS), {
        uniqueItems: true,
        contains: { const: 'room:join' },
        default: ['room:join'],
        description: 'What the participant may do; must include `room:join`.',
      }),
    ),
    metadata: Type.Optional(metadataObject('Initial participant metadata.')),
    ttlSeconds: Type.Optional(
      Type.Integer({
        minimum: TOKEN_TTL_SECONDS.min,
        maximum: TOKEN_TTL_SECONDS.max,
        default: TOKEN_TTL_SECONDS.default,
        description: 'Lifetime of the token, in seconds.',
      }),
    ),
    externalId: Type.Optional(trimmedText(EXTERNAL_ID_LENGTH_MAX, 'Your own identifier of the user.')),
  },
  { title: 'IssueToken' },
);

export const TokenSchema = Type.Object(
  {
    token: Type.String({ description: 'Bearer token (JWT, ES256) for one participant.' }),
    participantId: Type.String({ description: 'The new participant identity.' }),
    tokenId: Type.String({ description: 'Token identifier, `tok_…`.' }),
    expiresAt: timestamp("The token's `exp`."),
  },
  { title: 'ParticipantToken', additionalProperties: false },
);
