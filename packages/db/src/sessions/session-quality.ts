import type { QualitySeconds } from '@callplane/core';
import type { TypedSql } from '../client/database.js';

/** Seconds of a session that are not written yet. */
export interface QualityAddition {
  sessionId: string;
  seconds: QualitySeconds;
}

/**
 * Adds to the quality of sessions. Additions of several gateways add up, so this needs no fencing, and a session that
 * has just ended or moved still gets what its gateway counted before. Participants do not see the columns, so the rooms
 * keep their versions.
 * @param additions of different sessions.
 */
export async function addQuality(db: TypedSql, additions: readonly QualityAddition[]): Promise<void> {
  if (additions.length === 0) return;
  const of = (key: keyof QualitySeconds): number[] => additions.map(({ seconds }) => seconds[key]);
  // The rows are locked by id, like those of every other writer of several sessions.
  await db.$executeRaw`
    WITH locked AS MATERIALIZED (
      SELECT id FROM participant_sessions WHERE id = ANY(${additions.map(({ sessionId }) => sessionId)}::text[])
      ORDER BY id FOR NO KEY UPDATE
    )
    UPDATE participant_sessions s
    SET good_seconds = s.good_seconds + added.good, fair_seconds = s.fair_seconds + added.fair,
      poor_seconds = s.poor_seconds + added.poor, lost_seconds = s.lost_seconds + added.lost,
      relayed_seconds = s.relayed_seconds + added.relayed
    FROM unnest(${additions.map(({ sessionId }) => sessionId)}::text[], ${of('good')}::int[], ${of('fair')}::int[],
      ${of('poor')}::int[], ${of('lost')}::int[], ${of('relayed')}::int[])
      AS added (id, good, fair, poor, lost, relayed)
    WHERE s.id = added.id AND s.id = ANY(ARRAY(SELECT id FROM locked))`;
}
