import {
  decideRequest,
  newId,
  type OperationKind,
  type OperationState,
  type OperationStatus,
  type Tenant,
} from '@callplane/core';
import type { Db } from '../client/database.js';
import type { Prisma, RuntimeOperation } from '../generated/client.js';

/** What a wake-up needs to know of a row. */
export interface WakeableOperation {
  id: string;
  kind: OperationKind;
  run: number;
  runAttempts: number;
  wakeUps: number;
}

/** The answer to asking for a clean-up. `wake` is set when a worker has to be told of it. */
export interface AcceptedOperation {
  operation: OperationState;
  wake: WakeableOperation | null;
}

const SHOWN = { id: true, kind: true, status: true, attempts: true, lastError: true, completedAt: true } as const;

export async function findRoomOperation(db: Db, tenant: Tenant, roomId: string): Promise<OperationState | null> {
  const operation = await db.runtimeOperation.findFirst({
    where: { roomId, environmentId: tenant.environmentId, kind: 'room.end' },
    select: SHOWN,
  });
  return operation as OperationState | null;
}

export async function findParticipantOperation(
  db: Db,
  tenant: Tenant,
  participantId: string,
): Promise<OperationState | null> {
  const operation = await db.runtimeOperation.findFirst({
    where: { participantId, environmentId: tenant.environmentId, kind: 'participant.remove' },
    select: SHOWN,
  });
  return operation as OperationState | null;
}

/**
 * Accepts the end of a room: its status and the operation change together, so that from this commit on nobody gets a
 * token and nobody joins. Call it inside a transaction.
 * @returns null when the environment has no such room.
 */
export async function acceptRoomEnd(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  roomId: string,
  now: Date,
): Promise<AcceptedOperation | null> {
  // Requests for the same room queue up here; rows that refer to the room can still be written.
  const [room] = await tx.$queryRaw<{ id: string }[]>`
    SELECT id FROM rooms WHERE id = ${roomId} AND environment_id = ${tenant.environmentId} FOR NO KEY UPDATE`;
  if (room === undefined) return null;
  const existing = await tx.runtimeOperation.findFirst({ where: { roomId, kind: 'room.end' } });
  if (existing === null)
    await tx.room.update({ where: { id: roomId }, data: { status: 'ending' }, select: { id: true } });
  return acceptOperation(tx, tenant, { kind: 'room.end', roomId, participantId: null }, existing, now);
}

/**
 * Accepts the removal of a participant: its identity is blocked and its tokens are revoked from this commit on. Call it
 * inside a transaction.
 * @returns null when the room has no such participant.
 */
export async function acceptParticipantRemoval(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  roomId: string,
  participantId: string,
  now: Date,
): Promise<AcceptedOperation | null> {
  const [participant] = await tx.$queryRaw<{ id: string }[]>`
    SELECT id FROM participants
    WHERE id = ${participantId} AND room_id = ${roomId} AND environment_id = ${tenant.environmentId}
    FOR NO KEY UPDATE`;
  if (participant === undefined) return null;
  const existing = await tx.runtimeOperation.findFirst({ where: { participantId, kind: 'participant.remove' } });
  if (existing === null) {
    await tx.participant.update({ where: { id: participantId }, data: { removedAt: now }, select: { id: true } });
    await tx.participantToken.updateMany({ where: { participantId, revokedAt: null }, data: { revokedAt: now } });
  }
  return acceptOperation(tx, tenant, { kind: 'participant.remove', roomId, participantId }, existing, now);
}

async function acceptOperation(
  tx: Prisma.TransactionClient,
  tenant: Tenant,
  subject: { kind: OperationKind; roomId: string; participantId: string | null },
  existing: RuntimeOperation | null,
  now: Date,
): Promise<AcceptedOperation> {
  if (existing === null) {
    const created = await tx.runtimeOperation.create({
      data: {
        id: newId('operation'),
        environmentId: tenant.environmentId,
        ...subject,
        status: 'pending',
        createdAt: now,
      },
    });
    return { operation: created as OperationState, wake: created as WakeableOperation };
  }
  if (decideRequest(existing.status as OperationStatus) !== 'rerun') {
    return { operation: existing as OperationState, wake: null };
  }
  await tx.$executeRaw`
    UPDATE runtime_operations
    SET status = 'pending', run = run + 1, run_attempts = 0, wake_ups = 1, due_at = now(), woken_at = now()
    WHERE id = ${existing.id}`;
  const rerun = await tx.runtimeOperation.findUniqueOrThrow({ where: { id: existing.id } });
  return { operation: rerun as OperationState, wake: rerun as WakeableOperation };
}
