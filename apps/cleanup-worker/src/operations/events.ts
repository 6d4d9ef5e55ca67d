import {
  presentOperation,
  presentParticipant,
  presentRoom,
  type OperationState,
  type SessionEndReason,
  type Tenant,
} from '@callplane/core';
import {
  findParticipant,
  findRoom,
  writeEvents,
  writeSessionsEnded,
  type Db,
  type EndedSession,
  type WakeableDelivery,
} from '@callplane/db';
import type { Deps } from '../deps.js';

/** What an event of a clean-up is about. */
export interface Subject extends Tenant {
  roomId: string;
  participantId: string | null;
}

/** What each session that has just ended was publishing, and that it has left. Last in its transaction. */
export async function writeLeft(
  tx: Db,
  subject: Subject,
  ended: readonly EndedSession[],
  reason: SessionEndReason,
  now: Date,
): Promise<WakeableDelivery[]> {
  if (ended.length === 0) return [];
  const room = await findRoom(tx, subject, subject.roomId);
  if (room === null) throw new Error(`no room ${subject.roomId}`);
  return writeSessionsEnded(tx, subject, room, ended, reason, now);
}

export async function writeRoomEnded(tx: Db, subject: Subject, now: Date): Promise<WakeableDelivery[]> {
  const room = await roomOf(tx, subject);
  return (await writeEvents(tx, subject, subject.roomId, [{ type: 'room.ended', data: { room } }], now)).deliveries;
}

export async function writeOperationFailed(
  tx: Db,
  subject: Subject,
  operation: OperationState,
  now: Date,
): Promise<WakeableDelivery[]> {
  const data: Record<string, unknown> = { operation: presentOperation(operation), room: await roomOf(tx, subject) };
  if (subject.participantId !== null) {
    const participant = await findParticipant(tx, subject, subject.roomId, subject.participantId);
    if (participant !== null) data['participant'] = presentParticipant(participant, now);
  }
  return (await writeEvents(tx, subject, subject.roomId, [{ type: 'operation.failed', data }], now)).deliveries;
}

/** After the commit: best effort, because a sweep of the webhook workers finds what is not woken. */
export async function wake(
  deps: Pick<Deps, 'producer' | 'logger'>,
  deliveries: readonly WakeableDelivery[],
): Promise<void> {
  const woken = await deps.producer.wakeDeliveries(deliveries);
  if (!woken.ok) deps.logger.warn('deliveries not woken', { count: deliveries.length, error: woken.error });
}

async function roomOf(tx: Db, subject: Subject) {
  const room = await findRoom(tx, subject, subject.roomId);
  if (room === null) throw new Error(`no room ${subject.roomId}`);
  return presentRoom(subject, room);
}
