import { formatTimestamp, PublicError, type Tenant } from '@callplane/core';
import { listTokens, roomExists, type IssuedTokenRow } from '@callplane/db';
import type { Deps } from '../deps.js';
import type { PageCursor } from '../http/cursor.js';
import { defineRoute, type Route } from '../http/route.js';
import { PAGE_LIMIT_DEFAULT } from '../http/schemas.js';
import { RoomPath } from '../rooms/rooms.schemas.js';
import { IssuedTokenPage, ListTokensQuery, TOKEN_LIST, type TokenUse } from './tokens.schemas.js';

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
        const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
        const { tokens, nextCursor } = await pageOfTokens(deps, caller, params.roomId, { limit, cursor });
        const now = deps.clock.now();
        return { status: 200, body: { data: tokens.map((token) => present(token, now)), nextCursor } };
      },
    }),
  ];
}

async function pageOfTokens(
  { database }: Pick<Deps, 'database'>,
  tenant: Tenant,
  roomId: string,
  { limit, cursor }: { limit: number; cursor: PageCursor<{ id: string }> },
): Promise<{ tokens: IssuedTokenRow[]; nextCursor: string | null }> {
  const page = { beforeId: cursor.position?.id ?? null, limit: limit + 1 };
  const rows = await listTokens(database.sql, tenant, roomId, page);
  if (rows.length === 0 && !(await roomExists(database.prisma, tenant, roomId))) {
    throw new PublicError('ROOM_NOT_FOUND');
  }
  const tokens = rows.slice(0, limit);
  const last = tokens.at(-1);
  const hasMore = rows.length > limit && last !== undefined;
  return { tokens, nextCursor: hasMore ? cursor.encode({ id: last.participantId }) : null };
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
