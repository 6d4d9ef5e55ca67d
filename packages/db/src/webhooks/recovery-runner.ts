import { randomUUID } from 'node:crypto';
import type { Database, TypedSql } from '../client/database.js';
import type { WakeableDelivery } from '../events/write-events.js';
import { hasReplaysLeft, isErased, START_RUN } from './delivery.sql.js';

/** The result of one committed step of a recovery. */
export interface RecoveryStep {
  id: string;
  environmentId: string;
  endpointId: string;
  dryRun: boolean;
  matched: number;
  replayed: number;
  skipped: number;
  /** null while the recovery has more steps. */
  ended: 'completed' | 'cancelled' | null;
  /** Deliveries to wake. */
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
 * Takes the next batch of a recovery that is due. The replays (a new run each, like an explicit replay), the counters
 * and the position commit together, so that a crash neither loses nor repeats a replay. The lease sets the pace: with
 * any number of workers, a recovery makes one step per `paceMs`. A recovery of a disabled endpoint waits; one of a
 * deleted endpoint is cancelled.
 *
 * `matched` counts failed deliveries. `skipped` counts those of them that have been replayed 100 times, whose event was
 * erased, or that another transaction is replaying at this moment.
 * @returns null when no recovery is due.
 */
export function stepRecovery(database: Database, paceMs: number, limit: number): Promise<RecoveryStep | null> {
  return database.transaction(async (tx) => {
    const taken = await takeRecovery(tx);
    if (taken === null) return null;
    const { id, environmentId, endpointId, dryRun, endpointDeleted } = taken;
    const batch = await replayBatch(tx, taken, limit);
    const { deliveries } = batch;
    const ended = endpointDeleted ? 'cancelled' : batch.matched < limit ? 'completed' : null;
    const counts = {
      matched: endpointDeleted ? 0 : batch.matched,
      replayed: deliveries.length,
      skipped: endpointDeleted ? 0 : batch.matched - (dryRun ? batch.replayable : deliveries.length),
    };
    const totals = await saveStep(tx, id, { counts, last: batch.last, ended, paceMs });
    return { id, environmentId, endpointId, dryRun, ...totals, ended, deliveries };
  });
}

/** Locks the recovery that has waited longest; null when none is due. */
async function takeRecovery(tx: TypedSql): Promise<Taken | null> {
  const [taken] = await tx.$queryRaw<Taken[]>`
    SELECT r.id, r.environment_id AS "environmentId", r.endpoint_id AS "endpointId", r.since, r.until,
      r.dry_run AS "dryRun", r.position, e.deleted_at IS NOT NULL AS "endpointDeleted"
    FROM webhook_recoveries r JOIN webhook_endpoints e ON e.id = r.endpoint_id
    WHERE r.status = 'pending' AND (r.lease_expires_at IS NULL OR r.lease_expires_at <= now())
      AND (e.enabled OR r.dry_run OR e.deleted_at IS NOT NULL)
    ORDER BY r.lease_expires_at NULLS FIRST, r.created_at LIMIT 1 FOR NO KEY UPDATE OF r SKIP LOCKED`;
  return taken ?? null;
}

interface ReplayedBatch {
  matched: number;
  replayable: number;
  /** The last delivery of the batch; null when the batch is empty. */
  last: string | null;
  deliveries: WakeableDelivery[];
}

async function replayBatch(tx: TypedSql, taken: Taken, limit: number): Promise<ReplayedBatch> {
  const mayReplay = !taken.dryRun && !taken.endpointDeleted;
  const [batch] = await tx.$queryRaw<ReplayedBatch[]>`
    WITH batch AS (
      SELECT id, replay_count, event_id FROM webhook_deliveries
      WHERE endpoint_id = ${taken.endpointId} AND status = 'failed' AND id > ${taken.position ?? ''}
        AND created_at BETWEEN ${taken.since.toISOString()}::timestamptz AND ${taken.until.toISOString()}::timestamptz
      ORDER BY id LIMIT ${limit}
    ), replayable AS (
      -- Locks the events, so that no event is erased after its delivery was replayed.
      SELECT batch.id FROM batch JOIN events v ON v.id = batch.event_id
      WHERE ${hasReplaysLeft} AND NOT ${isErased}
      FOR SHARE OF v SKIP LOCKED
    ), replayed AS (
      UPDATE webhook_deliveries d SET ${START_RUN} FROM replayable
      WHERE d.id = replayable.id AND d.status = 'failed' AND ${hasReplaysLeft} AND ${mayReplay}
      RETURNING d.id, d.endpoint_id AS "endpointId"
    )
    SELECT (SELECT count(*)::int FROM batch) AS matched,
      (SELECT count(*)::int FROM replayable) AS replayable,
      (SELECT max(id) FROM batch) AS last,
      coalesce((SELECT jsonb_agg(to_jsonb(replayed)) FROM replayed), '[]'::jsonb) AS deliveries`;
  if (batch === undefined) throw new Error(`recovery ${taken.id} counted nothing`);
  return batch;
}

type Counts = Pick<RecoveryStep, 'matched' | 'replayed' | 'skipped'>;

/** Adds the counts of a step, and releases the recovery until its next step or ends it. Returns the totals. */
async function saveStep(
  tx: TypedSql,
  recoveryId: string,
  step: { counts: Counts; last: string | null; ended: RecoveryStep['ended']; paceMs: number },
): Promise<Counts> {
  const { counts, last, ended, paceMs } = step;
  const [totals] = await tx.$queryRaw<Counts[]>`
    UPDATE webhook_recoveries
    SET matched = matched + ${counts.matched}::int, replayed = replayed + ${counts.replayed}::int,
      skipped = skipped + ${counts.skipped}::int, position = coalesce(${last}::text, position),
      status = ${ended ?? 'pending'}, completed_at = CASE WHEN ${ended !== null} THEN now() END,
      lease_token = CASE WHEN ${ended === null} THEN ${randomUUID()}::uuid END,
      lease_expires_at = CASE WHEN ${ended === null} THEN now() + ${paceMs}::int * interval '1 millisecond' END
    WHERE id = ${recoveryId}
    RETURNING matched, replayed, skipped`;
  if (totals === undefined) throw new Error(`recovery ${recoveryId} no longer exists`);
  return totals;
}
