import { PublicError, type SessionRecord, type Tenant } from '@callplane/core';
import { findParticipant, listSessions, roomExists } from '@callplane/db';
import type { Deps } from '../deps.js';
import type { PageCursor } from '../http/cursor.js';
import { cutPage, type Page } from '../http/pages.js';
import { PAGE_LIMIT_DEFAULT } from '../http/schemas.js';

/** @param of the sessions of a room, or those of one of its participants. */
export async function pageOfSessions(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  of: { roomId: string; participantId: string | null },
  query: { limit?: number },
  cursor: PageCursor<{ id: string }>,
): Promise<Page<SessionRecord>> {
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const wanted = { ...of, beforeId: cursor.position?.id ?? null, limit: limit + 1 };
  const sessions = await listSessions(deps.database.sql, tenant, wanted);
  if (sessions.length === 0) await checkExists(deps, tenant, of);
  return cutPage(cursor, sessions, limit);
}

/** @throws PublicError for the missing resource: the room or the participant. */
async function checkExists(
  { database }: Pick<Deps, 'database'>,
  tenant: Tenant,
  { roomId, participantId }: { roomId: string; participantId: string | null },
): Promise<void> {
  if (participantId !== null && (await findParticipant(database.sql, tenant, roomId, participantId)) !== null) return;
  if (!(await roomExists(database.prisma, tenant, roomId))) throw new PublicError('ROOM_NOT_FOUND');
  if (participantId !== null) throw new PublicError('PARTICIPANT_NOT_FOUND');
}
