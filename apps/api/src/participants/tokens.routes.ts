import {
  formatTimestamp,
  isOpen,
  newId,
  PARTICIPANT_ROLE,
  PublicError,
  TOKEN_TTL_SECONDS,
  type Permission,
  type Tenant,
} from '@callplane/core';
import { listTokens, roomExists, type IssuedTokenRow } from '@callplane/db';
import jwt from 'jsonwebtoken';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineList, idOf } from '../http/cursor.js';
import { defineRoute, type Route } from '../http/route.js';
import { oneOf, orNull, page, pageById, pageQuery, timestamp } from '../http/schemas.js';
import { RoomPath } from '../rooms/rooms.routes.js';

const TOKEN_USES = ['unused', 'used', 'expired', 'room_ended', 'revoked'] as const;
type TokenUse = (typeof TOKEN_USES)[number];

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

const ListTokensQuery = Type.Object(pageQuery());
const TOKEN_LIST = defineList('tokens', { id: idOf('part') });

const IssuedTokenPage = page('IssuedTokenPage', IssuedTokenSchema);

export function tokenRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}/tokens',
      operationId: 'listTokens',
      summary: 'List issued tokens, newest first',
      description: 'Shows who may still join with a token, and who has. The tokens themselves are not stored.',
      tag: 'Participants',
      scope: 'participants:read',
      params: RoomPath,
      query: ListTokensQuery,
      list: TOKEN_LIST,
      responses: { 200: { description: 'One page of tokens.', schema: IssuedTokenPage } },
      errors: ['ROOM_NOT_FOUND'],
      async handle({ caller, params, query, cursor }) {
        const { prisma, sql } = deps.database;
        // A participant has one token: the position of a token is that of its participant.
        const { rows, nextCursor } = await pageById(cursor, query, async (part) =>
          (await listTokens(sql, caller, params.roomId, part)).map((token) => ({ id: token.participantId, token })),
        );
        if (rows.length === 0 && !(await roomExists(prisma, caller, params.roomId))) {
          throw new PublicError('ROOM_NOT_FOUND');
        }
        const now = deps.clock.now();
        return { status: 200, body: { data: rows.map(({ token }) => present(token, now)), nextCursor } };
      },
    }),
  ];
}

function present(token: IssuedTokenRow, now: Date) {
  const { id, participantId, participantName, permissions, createdAt, expiresAt, revokedAt, connectedAt } = token;
  return {
    id,
    participantId,
    participantName,
    permissions,
    state: useOf(token, now),
    createdAt: formatTimestamp(createdAt),
    expiresAt: formatTimestamp(expiresAt),
    usedAt: connectedAt === null ? null : formatTimestamp(connectedAt),
    revokedAt: revokedAt === null ? null : formatTimestamp(revokedAt),
  };
}

function useOf({ revokedAt, expiresAt, connectedAt, isRoomOver }: IssuedTokenRow, now: Date): TokenUse {
  if (revokedAt !== null) return 'revoked';
  if (isRoomOver) return 'room_ended';
  if (expiresAt <= now) return 'expired';
  return connectedAt === null ? 'unused' : 'used';
}

interface TokenInput {
  participantName: string;
  permissions?: Permission[];
  metadata?: Record<string, unknown>;
  ttlSeconds?: number;
  externalId?: string;
}

export interface IssuedToken {
  token: string;
  participantId: string;
  tokenId: string;
  expiresAt: Date;
}

/** Issues a participant token. Every call creates a new participant; it never renews the token of an existing one. */
export async function issueToken(
  deps: Pick<Deps, 'statements' | 'signingKeys' | 'tokens' | 'clock'>,
  tenant: Tenant,
  roomId: string,
  input: TokenInput,
): Promise<IssuedToken> {
  const signer = await deps.signingKeys.signer();
  const now = deps.clock.now();
  const issuedUnixSeconds = Math.floor(now.getTime() / 1000);
  const expiresUnixSeconds = issuedUnixSeconds + (input.ttlSeconds ?? TOKEN_TTL_SECONDS.default);
  const expiresAt = new Date(expiresUnixSeconds * 1000);
  const participantId = newId('participant');
  const tokenId = newId('token');
  const permissions = input.permissions ?? ['room:join'];
  const status = await deps.statements.insertParticipantIfOpen({
    tenant,
    participant: {
      id: participantId,
      roomId,
      externalId: input.externalId ?? null,
      name: input.participantName,
      metadata: input.metadata ?? {},
      role: PARTICIPANT_ROLE,
      createdAt: now,
      token: { id: tokenId, permissions, expiresAt },
    },
  });
  if (status === null) throw new PublicError('ROOM_NOT_FOUND');
  if (!isOpen(status)) throw new PublicError('ROOM_ENDED');
  const token = jwt.sign(
    {
      iss: deps.tokens.issuer,
      aud: deps.tokens.audience,
      sub: participantId,
      jti: tokenId,
      iat: issuedUnixSeconds,
      nbf: issuedUnixSeconds,
      exp: expiresUnixSeconds,
      projectId: tenant.projectId,
      environmentId: tenant.environmentId,
      roomId,
      name: input.participantName,
      permissions,
    },
    signer.privateKey,
    { algorithm: 'ES256', keyid: signer.kid },
  );
  return { token, participantId, tokenId, expiresAt };
}
