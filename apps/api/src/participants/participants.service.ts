import {
  type OperationState,
  type LiveParticipantState,
  type ParticipantStatus,
  PublicError,
  type Tenant,
} from '@callplane/core';
import { acceptParticipantRemoval, listParticipants, roomExists, type AcceptedOperation } from '@callplane/db';
import type { Deps } from '../deps.js';
import type { Page, PageCursor } from '../http/cursor.js';
import { PAGE_LIMIT_DEFAULT } from '../http/schemas.js';

export async function readParticipant(
  deps: Pick<Deps, 'database' | 'statements'>,
  tenant: Tenant,
  roomId: string,
  participantId: string,
): Promise<LiveParticipantState> {
  const participant = await deps.statements.findParticipant({ tenant, roomId, id: participantId });
  if (participant === null) throw await notFound(deps, tenant, roomId);
  return participant;
}

export async function pageOfParticipants(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  roomId: string,
  query: { status?: ParticipantStatus; externalId?: string; limit?: number },
  cursor: PageCursor<{ connectedAtMs: number; id: string }>,
): Promise<Page<LiveParticipantState>> {
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const { position } = cursor;
  const after = position === null ? null : { connectedAt: new Date(position.connectedAtMs), id: position.id };
  const participants = await listParticipants(deps.database.sql, tenant, roomId, {
    status: query.status ?? null,
    externalId: query.externalId ?? null,
    after,
    limit: limit + 1,
  });
  if (participants.length === 0 && !(await roomExists(deps.database.prisma, tenant, roomId))) {
    throw new PublicError('ROOM_NOT_FOUND');
  }
  const shown = participants.slice(0, limit);
  const last = shown.at(-1);
  const more = participants.length > limit && last !== undefined && last.connectedAt !== null;
  return {
    rows: shown,
    nextCursor: more ? cursor.encode({ connectedAtMs: last.connectedAt.getTime(), id: last.id }) : null,
  };
}

/** Once this commits, the participant is blocked and its tokens are revoked. A worker does the clean-up. */
export async function removeParticipant(
  deps: Pick<Deps, 'database' | 'clock'>,
  tenant: Tenant,
  roomId: string,
  participantId: string,
): Promise<AcceptedOperation> {
  const accepted = await acceptParticipantRemoval(deps.database, tenant, roomId, participantId, deps.clock.now());
  if (accepted === null) throw await notFound(deps, tenant, roomId);
  return accepted;
}

export async function readParticipantOperation(
  deps: Pick<Deps, 'database' | 'statements'>,
  tenant: Tenant,
  roomId: string,
  participantId: string,
): Promise<OperationState> {
  await readParticipant(deps, tenant, roomId, participantId);
  const operation = await deps.statements.findParticipantOperation({ tenant, id: participantId });
  if (operation === null) throw new PublicError('OPERATION_NOT_FOUND');
  return operation;
}

/** Returns the error for the missing resource: the room or the participant. */
async function notFound(deps: Pick<Deps, 'database'>, tenant: Tenant, roomId: string): Promise<PublicError> {
  const exists = await roomExists(deps.database.prisma, tenant, roomId);
  return new PublicError(exists ? 'PARTICIPANT_NOT_FOUND' : 'ROOM_NOT_FOUND');
}
