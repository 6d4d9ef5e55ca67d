import { randomUUID } from 'node:crypto';
import { REPLAYS_MAX } from '@callplane/core';
import type { Database } from '../client/database.js';
import type { WakeableDelivery } from '../events/write-events.js';

/** One step of a recovery, after it has committed. */
export interface RecoveryStep {
  id: string;
  environmentId: string;
  endpointId: string;
  dryRun: boolean;
  matched: number;
  replayed: number;
  skipped: number;
  /** null while there is more to do. */
  ended: 'completed' | 'cancelled' | null;
  /** Wake these. */
  deliveries: WakeableDelivery[];
}

interface Taken {
  id: string;
  environmentId: string;
  endpointId: string;
  since: Date;
  until: Date;
  dryRun: boolean;
  position: string | null;
  endpointDeleted: boolean;
}

/**
 * Takes the next batch of some recovery whose turn has come: replays (a new run each, as an explicit replay), counters
 * and position commit together, so that a crash loses nothing and repeats nothing. The lease is its pace: however many
 * workers there are, a recovery makes one step in `paceMs`. The recovery of a disabled endpoint waits; that of a deleted
 * one is cancelled.
 *
 * Counted as matched are deliveries that have failed; of these, skipped are those that have been replayed 100 times and
 * those that somebody else replays at this moment.
 * @returns null when there is none to take now.
 */
export function stepRecovery(database: Database, paceMs: number, limit: number): Promise<RecoveryStep | null> {
  return database.transaction(async (tx) => {
    const [taken] = await tx.$queryRaw<Taken[]>`
      SELECT r.id, r.environment_id AS "environmentId", r.endpoint_id AS "endpointId", r.since, r.until,
        r.dry_run AS "dryRun", r.position, e.deleted_at IS NOT NULL AS "endpointDeleted"
      FROM webhook_recoveries r JOIN webhook_endpoints e ON e.id = r.endpoint_id
      WHERE r.status = 'pending' AND (r.lease_expires_at IS NULL OR r.lease_expires_at <= now())
        AND (e.enabled OR r.dry_run OR e.deleted_at IS NOT NULL)
      ORDER BY r.lease_expires_at NULLS FIRST, r.created_at LIMIT 1 FOR NO KEY UPDATE OF r SKIP LOCKED`;
    if (taken === undefined) return null;
    const { id, environmentId, endpointId, dryRun } = taken;
    const mayReplay = !dryRun && !taken.endpointDeleted;
    const [counted] = await tx.$queryRaw<
      { matched: number; atLimit: number; last: string | null; deliveries: WakeableDelivery[] }[]
    >`
      WITH batch AS (
        SELECT id, replay_count FROM webhook_deliveries
        WHERE endpoint_id = ${endpointId} AND status = 'failed' AND id > ${taken.position ?? ''}
          AND created_at BETWEEN ${taken.since.toISOString()}::timestamptz AND ${taken.until.toISOString()}::timestamptz
        ORDER BY id LIMIT ${limit}
      ), replayed AS (
        UPDATE webhook_deliveries d
        SET status = 'pending', failure_reason = NULL, replay_count = d.replay_count + 1, run_attempts = 0,
          run_started_at = now(), url = NULL, secret_version = NULL, due_at = now(), woken_at = now(), wake_ups = 1
        FROM batch WHERE d.id = batch.id AND d.status = 'failed' AND d.replay_count < ${REPLAYS_MAX} AND ${mayReplay}
        RETURNING d.id, d.replay_count AS run, d.run_attempts AS "runAttempts", d.wake_ups AS "wakeUps"
      )
      SELECT (SELECT count(*)::int FROM batch) AS matched,
        (SELECT count(*)::int FROM batch WHERE replay_count >= ${REPLAYS_MAX}) AS "atLimit",
        (SELECT max(id) FROM batch) AS last,
        coalesce((SELECT jsonb_agg(to_jsonb(replayed)) FROM replayed), '[]'::jsonb) AS deliveries`;
    if (counted === undefined) throw new Error(`recovery ${id} counted nothing`);
    const { deliveries } = counted;
    const skipped = dryRun ? counted.atLimit : counted.matched - deliveries.length;
    const ended = taken.endpointDeleted ? 'cancelled' : counted.matched < limit ? 'completed' : null;
    const [row] = await tx.$queryRaw<Pick<RecoveryStep, 'matched' | 'replayed' | 'skipped'>[]>`
      UPDATE webhook_recoveries
      SET matched = matched + ${taken.endpointDeleted ? 0 : counted.matched}::int,
        replayed = replayed + ${deliveries.length}::int,
        skipped = skipped + ${taken.endpointDeleted ? 0 : skipped}::int,
        position = coalesce(${counted.last}::text, position), status = ${ended ?? 'pending'},
        completed_at = CASE WHEN ${ended !== null} THEN now() END,
        lease_token = CASE WHEN ${ended === null} THEN ${randomUUID()}::uuid END,
        lease_expires_at = CASE WHEN ${ended === null} THEN now() + ${paceMs}::int * interval '1 millisecond' END
      WHERE id = ${id}
      RETURNING matched, replayed, skipped`;
    if (row === undefined) throw new Error(`recovery ${id} is gone`);
    return { id, environmentId, endpointId, dryRun, ...row, ended, deliveries };
  });
}
