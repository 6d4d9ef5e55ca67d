import {
  type OperationState,
  type ParticipantState,
  type ParticipantStatus,
  PublicError,
  type Tenant,
} from '@callplane/core';
import {
  acceptParticipantRemoval,
  findParticipant,
  findParticipantOperation,
  listParticipants,
  roomExists,
  type AcceptedOperation,
  type ParticipantPosition,
} from '@callplane/db';
import type { Deps } from '../deps.js';
import { decodeCursor, encodeCursor } from '../http/cursor.js';
import { PAGE_LIMIT_DEFAULT } from '../http/schemas.js';

export async function readParticipant(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  roomId: string,
  participantId: string,
): Promise<ParticipantState> {
  const participant = await findParticipant(deps.database.prisma, tenant, roomId, participantId);
  if (participant === null) throw await notFound(deps, tenant, roomId);
  return participant;
}

export async function pageOfParticipants(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  roomId: string,
  query: { status?: ParticipantStatus; limit?: number; cursor?: string },
): Promise<{ participants: ParticipantState[]; nextCursor: string | null }> {
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const after = query.cursor === undefined ? null : toPosition(decodeCursor(query.cursor));
  const participants = await listParticipants(deps.database.prisma, tenant, roomId, {
    status: query.status ?? null,
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
    participants: shown,
    nextCursor: more ? encodeCursor('participants', [last.connectedAt.toISOString(), last.id]) : null,
  };
}

/** From the commit of this on, the identity is blocked and its tokens are revoked; a worker does the rest. */
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
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  roomId: string,
  participantId: string,
): Promise<OperationState> {
  await readParticipant(deps, tenant, roomId, participantId);
  const operation = await findParticipantOperation(deps.database.prisma, tenant, participantId);
  if (operation === null) throw new PublicError('OPERATION_NOT_FOUND');
  return operation;
}

/** Says which of the two is missing. */
async function notFound(deps: Pick<Deps, 'database'>, tenant: Tenant, roomId: string): Promise<PublicError> {
  const exists = await roomExists(deps.database.prisma, tenant, roomId);
  return new PublicError(exists ? 'PARTICIPANT_NOT_FOUND' : 'ROOM_NOT_FOUND');
}

function toPosition([connectedAt = '', id = '']: string[]): ParticipantPosition {
  return { connectedAt: new Date(connectedAt), id };
}
