import { operationFailed, type OperationError, type OperationState } from '@callplane/core';
import { findParticipants, findRoom, writeEvents, type DueEndpoint, type TypedSql } from '@callplane/db';
import type { Kind, Subject } from './kind.js';

/** Writes the effects of a failed run. Call it in the transaction that settles the operation. */
export async function writeOperationFailed<Deps>(
  tx: TypedSql,
  kind: Kind<Deps> | undefined,
  subject: Subject,
  operation: OperationState,
  now: Date,
): Promise<DueEndpoint[]> {
  const { roomId, participantId } = subject;
  const error = operation.lastError as OperationError;
  const first = (await kind?.fail?.(tx, subject, error, now)) ?? [];
  const room = await findRoom(tx, subject, roomId);
  if (room === null) throw new Error(`no room ${roomId}`);
  const [participant = null] =
    participantId === null ? [] : await findParticipants(tx, [{ tenant: subject, roomId, id: participantId }]);
  const event = operationFailed({ tenant: subject, room, now }, operation, participant);
  return [...first, ...(await writeEvents(tx, [event])).deliveries];
}
