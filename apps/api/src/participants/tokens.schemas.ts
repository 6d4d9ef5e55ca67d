import { Type } from 'typebox';
import { defineList, idOf } from '../http/cursor.js';
import { oneOf, orNull, page, pageQuery, timestamp } from '../http/schemas.js';

const TOKEN_USES = ['unused', 'used', 'expired', 'room_ended', 'revoked'] as const;
export type TokenUse = (typeof TOKEN_USES)[number];

const IssuedTokenSchema = Type.Object(
  {
    id: Type.String({ description: 'The `jti` of the token, `tok_…`.' }),
    participantId: Type.String(),
    participantName: Type.String(),
    permissions: Type.Array(Type.String()),
    state: oneOf(
      TOKEN_USES,
      '`unused` and `used` tokens let their participant join; `used`: it has joined before. `room_ended`: the room ' +
        'ends or has ended.',
    ),
    createdAt: timestamp('When the token was issued.'),
    expiresAt: timestamp('Until when the participant may join with it.'),
    usedAt: orNull(timestamp('When the participant joined for the first time.')),
    revokedAt: orNull(timestamp('When the participant was removed, which revokes the token.')),
  },
  { title: 'IssuedToken', additionalProperties: false },
);

export const ListTokensQuery = Type.Object(pageQuery());
export const TOKEN_LIST = defineList('tokens', { id: idOf('part') });

export const IssuedTokenPage = page('IssuedTokenPage', IssuedTokenSchema);
