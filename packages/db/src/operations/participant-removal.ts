import type { Tenant } from '@callplane/core';
import type { Database } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { touchSessions } from '../sessions/session-connection.js';
import { acceptAgain, accepted, insertOperations, type AcceptedOperation } from './operations.repository.js';

/**
 * Accepts the removal of a participant: from this commit on the participant is blocked and its tokens are revoked. The
 * first request takes one statement; a repeated one takes a transaction.
 * @returns null when the room has no such participant.
 */
export async function acceptParticipantRemoval(
  database: Database,
  tenant: Tenant,
  roomId: string,
  participantId: string,
  now: Date,
): Promise<AcceptedOperation | null> {
  const at = now.toISOString();
  const participant = Prisma.sql`subject AS (
      UPDATE participants SET removed_at = ${at}::timestamptz
      WHERE id = ${participantId} AND room_id = ${roomId} AND environment_id = ${tenant.environmentId}
        AND removed_at IS NULL
      RETURNING id, environment_id, room_id, id AS participant_id, NULL::int AS version
    ), tokens AS (
      UPDATE participant_tokens SET revoked_at = ${at}::timestamptz
      WHERE revoked_at IS NULL AND participant_id IN (SELECT id FROM subject)
    )`;
  const [created] = await insertOperations(database.sql, 'participant.remove', participant, now, tenant.traceparent);
  if (created !== undefined) {
    // A statement of its own, which sees a session whose join the one before has waited for. Best effort: the clean-up
    // begins with it, too.
    return accepted(created, await touchSessions(database.sql, participantId).catch(() => null));
  }
  const { environmentId } = tenant;
  return acceptAgain(database, { environmentId, roomId, subjectId: participantId, kind: 'participant.remove' });
}
