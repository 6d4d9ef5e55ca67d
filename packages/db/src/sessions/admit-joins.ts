import type { PaceTimes, Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { paced } from './paced.js';

export interface JoinRequest {
  tenant: Tenant;
  roomId: string;
  participantId: string;
}

export type Admission =
  /** `number` is the participant's join count: {@link joinSessions} refuses a join that is not the latest. */
  { outcome: 'admitted'; number: number } | { outcome: 'too_many'; waitMs: number } | { outcome: 'not_found' };

const TOO_MANY_WAIT_MS_MIN = 1;

/**
 * Numbers joins at the moment when a gateway receives them, and takes a token from the bucket of each participant. One
 * statement outside of a transaction: a join that is refused here locks and writes nothing.
 * @param requests joins of different participants.
 * @returns the admissions in the order of the requests.
 */
export async function admitJoins(
  db: TypedSql,
  requests: readonly JoinRequest[],
  pace: PaceTimes,
): Promise<Admission[]> {
  const bucket = paced(Prisma.sql`p.joins_full_at`, pace);
  const rows = await db.$queryRaw<{ participantId: string; number: number | null; waitMs: number }[]>`
    WITH input AS MATERIALIZED (
      SELECT p.id, ${bucket.waitMs} AS wait_ms
      FROM unnest(${requests.map(({ participantId }) => participantId)}::text[],
        ${requests.map(({ roomId }) => roomId)}::text[],
        ${requests.map(({ tenant }) => tenant.environmentId)}::text[]) AS request (id, room_id, environment_id)
      -- The last two conditions are such that no index serves them: only the id leads to one row for sure.
      JOIN participants p ON p.id = request.id
        AND p.room_id || '' = request.room_id AND p.environment_id || '' = request.environment_id
    ), free AS MATERIALIZED (
      SELECT p.id FROM participants p WHERE p.id = ANY(ARRAY(SELECT id FROM input)) AND ${bucket.isFree}
      ORDER BY p.id FOR NO KEY UPDATE
    ), admitted AS (
      UPDATE participants p SET join_count = p.join_count + 1, joins_full_at = ${bucket.taken}
      WHERE p.id = ANY(ARRAY(SELECT id FROM free))
      RETURNING p.id, p.join_count
    )
    SELECT input.id AS "participantId", admitted.join_count AS number, input.wait_ms AS "waitMs"
    FROM input LEFT JOIN admitted ON admitted.id = input.id`;
  const found = new Map(rows.map((row) => [row.participantId, row]));
  return requests.map(({ participantId }): Admission => {
    const row = found.get(participantId);
    if (row === undefined) return { outcome: 'not_found' };
    if (row.number !== null) return { outcome: 'admitted', number: row.number };
    // `waitMs` describes the row before the update, which another join may have changed meanwhile.
    return { outcome: 'too_many', waitMs: Math.max(row.waitMs, TOO_MANY_WAIT_MS_MIN) };
  });
}
