import { ERASED_PARTICIPANT, eraseEventBody } from '@callplane/core';
import type { Database } from '../client/database.js';
import { deleteBatch } from '../client/sql.js';
import { Prisma } from '../generated/client.js';
import { eraseRecordings, isRecorded, type RecordingErasure } from '../recordings/recording-retention.js';
import { lockParticipants } from '../sessions/session-ends.js';

/**
 * Erasure of a participant's personal data. The request is a row of `participant_erasures`. The row stays until no
 * stored event holds the data, because an event with unfinished deliveries keeps its bytes until they finish. The
 * command erases as much as it can at once; a sweep of the cleanup workers erases the rest.
 */

const BATCH = 200;

/**
 * Minimum time for which a request is kept, in seconds: a transaction that read the participant before the erasure may
 * write an event afterwards. Transactions end within 15 s.
 */
const KEPT_SECONDS = 3600;

/**
 * Blanks a participant's row, revokes its tokens and requests the erasure of its events, also if retention has deleted
 * the participant before them, and of its recordings. Rejects a participant who is in a call: the others would still see
 * the name.
 */
export function requestErasure(
  database: Database,
  participantId: string,
  now: Date,
): Promise<RecordingErasure | 'unknown' | 'in a call'> {
  const at = Prisma.sql`${now.toISOString()}::timestamptz`;
  return database.transaction(async (tx) => {
    // Locks the participant, as joins do first, so that no join can run in between.
    const [participant] = await lockParticipants(tx, Prisma.sql`id = ${participantId}`);
    if (participant !== undefined) {
      const { name, externalId, metadata } = ERASED_PARTICIPANT;
      // The tokens hold the name, so they must not admit another join.
      const erased = await tx.$executeRaw`
        WITH participant AS (
          UPDATE participants SET name = ${name}, external_id = ${externalId}, metadata = ${JSON.stringify(metadata)}::jsonb
          WHERE id = ${participantId}
            AND NOT EXISTS (SELECT 1 FROM participant_sessions WHERE participant_id = ${participantId} AND ended_at IS NULL)
          RETURNING id
        ), tokens AS (
          UPDATE participant_tokens SET revoked_at = ${at}
          FROM participant WHERE participant_id = participant.id AND revoked_at IS NULL
        )
        SELECT id FROM participant`;
      if (erased === 0) return 'in a call';
    }
    const requested = await tx.$executeRaw`
      INSERT INTO participant_erasures (participant_id, environment_id, requested_at)
      SELECT ${participantId}, environment_id, ${at} FROM (
        SELECT environment_id FROM participants WHERE id = ${participantId}
        UNION ALL (SELECT environment_id FROM events WHERE participant_id = ${participantId} LIMIT 1)
      ) known LIMIT 1
      ON CONFLICT (participant_id) DO UPDATE SET requested_at = excluded.requested_at`;
    return requested === 0 ? 'unknown' : eraseRecordings(tx, participantId, now);
  });
}

/**
 * Erases one batch of events whose deliveries are finished, together with the stored responses of the receivers.
 * @param participantId erases only the events of this participant; null means all requests.
 * @returns the number of erased events; call it until it returns 0.
 */
export function eraseEvents(database: Database, participantId: string | null, now: Date): Promise<number> {
  return database.transaction(async (tx) => {
    // A replay locks its event with FOR SHARE, so a replay and this erasure exclude each other.
    const events = await tx.$queryRaw<{ id: string; body: string }[]>`
      SELECT v.id, v.body FROM participant_erasures x JOIN events v ON v.participant_id = x.participant_id
      WHERE v.erased_at IS NULL AND (${participantId}::text IS NULL OR x.participant_id = ${participantId}::text)
        AND NOT EXISTS (
          SELECT 1 FROM webhook_deliveries d WHERE d.event_id = v.id AND d.status IN ('pending', 'delivering'))
      LIMIT ${BATCH} FOR UPDATE OF v SKIP LOCKED`;
    if (events.length === 0) return 0;
    // Checks again under the locks: a replay may have started a run just before. The receivers' responses may echo the
    // event.
    const [row] = await tx.$queryRaw<[{ erased: number }]>`
      WITH blanked AS (
        UPDATE events v SET body = erased.body, erased_at = ${now.toISOString()}::timestamptz
        FROM unnest(${events.map(({ id }) => id)}::text[],
          ${events.map(({ body }) => eraseEventBody(body, now))}::text[]) AS erased (id, body)
        WHERE v.id = erased.id AND NOT EXISTS (
          SELECT 1 FROM webhook_deliveries d WHERE d.event_id = v.id AND d.status IN ('pending', 'delivering'))
        RETURNING v.id
      ), answers AS (
        UPDATE webhook_attempts a SET response_body = NULL, exchange = a.exchange - 'responseHeaders'
        FROM blanked JOIN webhook_deliveries d ON d.event_id = blanked.id
        WHERE a.delivery_id = d.id AND (a.response_body IS NOT NULL OR a.exchange -> 'responseHeaders' IS NOT NULL)
      )
      SELECT count(*)::int AS erased FROM blanked`;
    return row.erased;
  });
}

export async function countEventsToErase(database: Database, participantId: string): Promise<number> {
  return database.prisma.event.count({ where: { participantId, erasedAt: null } });
}

/** Deletes one batch of requests whose events and recordings are all erased. */
export function completeErasures({ sql }: Database): PromiseLike<number> {
  const rows = Prisma.sql`
    SELECT target.participant_id FROM participant_erasures target
    WHERE target.requested_at <= now() - ${KEPT_SECONDS}::int * interval '1 second'
      AND NOT EXISTS (SELECT 1 FROM events v WHERE v.participant_id = target.participant_id AND v.erased_at IS NULL)
      AND NOT ${isRecorded(Prisma.sql`target`)}`;
  return deleteBatch(sql, 'participant_erasures', { rows, limit: BATCH, key: 'participant_id' });
}
