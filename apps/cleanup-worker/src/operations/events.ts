import type { EndedSession, RoomState, SessionEndReason, Tenant } from '@callplane/core';
import { findRoom, writeSessionsEnded, type DueEndpoint, type TypedSql } from '@callplane/db';

interface CleanUpSubject extends Tenant {
  roomId: string;
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

async function roomOf(tx: TypedSql, subject: CleanUpSubject): Promise<RoomState> {
  const room = await findRoom(tx, subject, subject.roomId);
  if (room === null) throw new Error(`no room ${subject.roomId}`);
  return room;
}
