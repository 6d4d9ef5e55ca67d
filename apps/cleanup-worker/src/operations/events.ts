import {
  operationFailed,
  type EndedSession,
  type OperationState,
  type RoomState,
  type SessionEndReason,
  type Tenant,
} from '@callplane/core';
import {
  type DueEndpoint,
  findParticipants,
  findRoom,
  type TypedSql,
  writeEvents,
  writeSessionsEnded,
} from '@callplane/db';

/** The room, and for a removal the participant, that an event of a clean-up describes. */
interface CleanUpSubject extends Tenant {
  roomId: string;
  participantId: string | null;
}

/**
 * Writes the events of sessions that have just ended: their tracks are unpublished, their participants have left.
 * Call it last in the transaction.
 */
export async function writeLeft(
  tx: TypedSql,
  subject: CleanUpSubject,
  ended: readonly EndedSession[],
  reason: SessionEndReason,
  now: Date,
): Promise<DueEndpoint[]> {
  if (ended.length === 0) return [];
  return writeSessionsEnded(tx, subject, await roomOf(tx, subject), ended, reason, now);
}

export async function writeOperationFailed(
  tx: TypedSql,
  subject: CleanUpSubject,
  operation: OperationState,
  now: Date,
): Promise<DueEndpoint[]> {
  const { roomId, participantId } = subject;
  const room = await roomOf(tx, subject);
  const [participant = null] =
    participantId === null ? [] : await findParticipants(tx, [{ tenant: subject, roomId, id: participantId }]);
  const event = operationFailed({ tenant: subject, room, now }, operation, participant);
  return (await writeEvents(tx, [event])).deliveries;
}

async function roomOf(tx: TypedSql, subject: CleanUpSubject): Promise<RoomState> {
  const room = await findRoom(tx, subject, subject.roomId);
  if (room === null) throw new Error(`no room ${subject.roomId}`);
  return room;
}
