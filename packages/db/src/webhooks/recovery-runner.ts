import { randomUUID } from 'node:crypto';
import { RECOVERY_IN_FLIGHT_MAX, type RecoveryPace, type SlotMs } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import type { WebhookRecovery } from '../generated/client.js';
import type { DueEndpoint } from './due-endpoints.js';
import { BRING_FORWARD, hasReplaysLeft, isErased, START_RUN } from './webhooks.sql.js';

interface RecoveryStep {
  id: string;
  environmentId: string;
  endpointId: string;
  dryRun: boolean;
  matched: number;
  replayed: number;
  woken: number;
  skipped: number;
  /** null while the recovery has more steps. */
  ended: 'completed' | 'cancelled' | null;
  /** The endpoint, if the step has replayed deliveries or brought them forward. The caller wakes it. */
  wake: DueEndpoint[];
}

interface Taken extends Pick<
  WebhookRecovery,
  'id' | 'environmentId' | 'endpointId' | 'since' | 'until' | 'dryRun' | 'includePending' | 'position' | 'inFlight'
> {
  endpointDeleted: boolean;
  slotMs: SlotMs;
  isBusy: boolean;
}

/**
 * Takes the next batch of a recovery that is due, oldest deliveries first. It replays failed deliveries (a new run each,
 * like an explicit replay) and brings pending ones forward. Deliveries, counters and position commit together, so that
 * a crash neither loses nor repeats a replay. The lease sets the pace. A recovery of a disabled endpoint waits; one of a
 * deleted endpoint is cancelled.
 *
 * `matched` counts failed and pending deliveries. `skipped` counts failed ones that have been replayed 100 times, whose
 * event was erased, or that another transaction is replaying at this moment. A delivery in flight counts once its
 * attempt has failed: the recovery remembers it, and is not complete before. While it remembers as many as it may, it
 * reads no further.
 * @returns null when no recovery is due.
 */
export function stepRecovery(database: Database, pace: RecoveryPace): Promise<RecoveryStep | null> {
  return database.transaction(async (tx) => {
    const taken = await takeRecovery(tx, pace.dueMax);
    if (taken === null) return null;
    const { id, environmentId, endpointId, dryRun, endpointDeleted } = taken;
    const limit = taken.isBusy ? pace.batchMaxWhileBusy : pace.batchMax;
    // Each new delivery may turn out to be in flight, and the recovery must not pass one that it cannot remember.
    const newMax = Math.min(limit, RECOVERY_IN_FLIGHT_MAX - taken.inFlight.length);
    const batch = await recoverBatch(tx, taken, limit, newMax);
    const isLast = batch.found < newMax && batch.inFlight.length === 0;
    const ended = endpointDeleted ? 'cancelled' : isLast ? 'completed' : null;
    const counts = endpointDeleted
      ? { matched: 0, replayed: 0, woken: 0, skipped: 0 }
      : {
          matched: batch.failed + (dryRun ? batch.pending : batch.woken.length),
          replayed: batch.replayed.length,
          woken: batch.woken.length,
          skipped: batch.failed - (dryRun ? batch.replayable : batch.replayed.length),
        };
    const totals = await saveStep(tx, id, { counts, last: batch.last, inFlight: batch.inFlight, ended, ...pace });
    const isChanged = batch.replayed.length + batch.woken.length > 0;
    const wake = isChanged ? [{ endpointId, environmentId, slotMs: taken.slotMs }] : [];
    return { id, environmentId, endpointId, dryRun, ...totals, ended, wake };
  });
}

/**
 * Locks the recovery that has waited longest; null when none is due. A new one waits since its creation: if new ones
 * came first, a flood of them would delay the steps of all others.
 */
async function takeRecovery(tx: TypedSql, dueMax: number): Promise<Taken | null> {
  const [taken] = await tx.$queryRaw<Taken[]>`
    SELECT r.id, r.environment_id AS "environmentId", r.endpoint_id AS "endpointId", r.since, r.until,
      r.dry_run AS "dryRun", r.include_pending AS "includePending", r.position, r.in_flight AS "inFlight",
      e.deleted_at IS NOT NULL AS "endpointDeleted", e.slot_ms AS "slotMs",
      (SELECT count(*) FROM (
        SELECT 1 FROM webhook_deliveries
        WHERE endpoint_id = r.endpoint_id AND status = 'pending' AND due_at <= now() LIMIT ${dueMax}::int
      ) AS due) >= ${dueMax}::int AS "isBusy"
    FROM webhook_recoveries r JOIN webhook_endpoints e ON e.id = r.endpoint_id
    WHERE r.status = 'pending' AND (r.lease_expires_at IS NULL OR r.lease_expires_at <= now())
      AND (e.enabled OR r.dry_run OR e.deleted_at IS NOT NULL)
    ORDER BY coalesce(r.lease_expires_at, r.created_at), r.id LIMIT 1 FOR NO KEY UPDATE OF r SKIP LOCKED`;
  return taken ?? null;
}

interface RecoveredBatch {
  /** Deliveries that the batch has read: failed, pending and in flight. */
  found: number;
  failed: number;
  replayable: number;
  pending: number;
  last: string | null;
  replayed: string[];
  woken: string[];
  inFlight: string[];
}

/**
 * Reads the next deliveries, first the ones that were in flight before, and recovers them. A pending row that another
 * transaction has locked counts as in flight: a worker is claiming it.
 * @param limit of all deliveries of the batch; the pace
 * @param newMax limit of the deliveries that the recovery reads for the first time
 */
async function recoverBatch(tx: TypedSql, taken: Taken, limit: number, newMax: number): Promise<RecoveredBatch> {
  const { endpointId, dryRun, includePending, inFlight } = taken;
  const mayChange = !dryRun && !taken.endpointDeleted;
  const position = taken.position ?? '';
  const [since, until] = [taken.since.toISOString(), taken.until.toISOString()];
  const [batch] = await tx.$queryRaw<RecoveredBatch[]>`
    WITH batch AS MATERIALIZED (
      SELECT * FROM (
        (SELECT * FROM (
          (SELECT id, status, replay_count, event_id FROM webhook_deliveries
          WHERE endpoint_id = ${endpointId} AND status = 'failed' AND id > ${position}
            AND created_at BETWEEN ${since}::timestamptz AND ${until}::timestamptz ORDER BY id LIMIT ${newMax})
          UNION ALL
          (SELECT id, status, replay_count, event_id FROM webhook_deliveries
          WHERE endpoint_id = ${endpointId} AND status IN ('pending', 'delivering') AND id > ${position}
            AND created_at BETWEEN ${since}::timestamptz AND ${until}::timestamptz AND ${includePending}
          ORDER BY id LIMIT ${newMax})
        ) AS next ORDER BY id LIMIT ${newMax})
        UNION ALL
        (SELECT id, status, replay_count, event_id FROM webhook_deliveries
        WHERE id = ANY(${inFlight}::text[]) AND status IN ('failed', 'pending'))
      ) AS found ORDER BY id LIMIT ${limit}
    ), replayable AS (
      -- Locks the events, so that no event is erased after its delivery was replayed.
      SELECT batch.id FROM batch JOIN events v ON v.id = batch.event_id
      WHERE batch.status = 'failed' AND ${hasReplaysLeft} AND NOT ${isErased}
      FOR SHARE OF v SKIP LOCKED
    ), replayed AS (
      UPDATE webhook_deliveries d SET ${START_RUN} FROM replayable
      WHERE d.id = replayable.id AND d.status = 'failed' AND ${hasReplaysLeft} AND ${mayChange}
      RETURNING d.id
    ), free AS (
      -- Never waits for a claim, a retry or the deletion of the endpoint, and so is no part of a deadlock.
      SELECT id FROM webhook_deliveries
      WHERE id = ANY(ARRAY(SELECT id FROM batch WHERE status = 'pending')) AND status = 'pending' AND ${mayChange}
      FOR NO KEY UPDATE SKIP LOCKED
    ), woken AS (
      UPDATE webhook_deliveries d SET ${BRING_FORWARD} FROM free WHERE d.id = free.id AND d.status = 'pending'
      RETURNING d.id
    ), in_flight AS (
      SELECT id FROM batch WHERE status = 'delivering' OR (status = 'pending' AND id NOT IN (SELECT id FROM woken))
      UNION ALL
      SELECT id FROM webhook_deliveries
      WHERE id = ANY(${inFlight}::text[]) AND status <> 'succeeded' AND id NOT IN (SELECT id FROM batch)
    )
    SELECT (SELECT count(*)::int FROM batch) AS found,
      (SELECT count(*)::int FROM batch WHERE status = 'failed') AS failed,
      (SELECT count(*)::int FROM replayable) AS replayable,
      (SELECT count(*)::int FROM batch WHERE status = 'pending') AS pending,
      (SELECT max(id) FROM batch) AS last,
      ARRAY(SELECT id FROM replayed) AS replayed, ARRAY(SELECT id FROM woken) AS woken,
      ARRAY(SELECT id FROM in_flight WHERE ${mayChange}) AS "inFlight"`;
  if (batch === undefined) throw new Error(`recovery ${taken.id} counted nothing`);
  return batch;
}

type Counts = Pick<RecoveryStep, 'matched' | 'replayed' | 'woken' | 'skipped'>;

/** Adds the counts of a step, and releases the recovery until its next step or ends it. Returns the totals. */
async function saveStep(
  tx: TypedSql,
  recoveryId: string,
  step: { counts: Counts; last: string | null; inFlight: string[]; ended: RecoveryStep['ended']; paceMs: number },
): Promise<Counts> {
  const { counts, last, inFlight, ended, paceMs } = step;
  const [totals] = await tx.$queryRaw<Counts[]>`
    UPDATE webhook_recoveries
    SET matched = matched + ${counts.matched}::int, replayed = replayed + ${counts.replayed}::int,
      woken = woken + ${counts.woken}::int, skipped = skipped + ${counts.skipped}::int,
      position = greatest(${last}::text, position), in_flight = ${inFlight}::text[],
      status = ${ended ?? 'pending'}, completed_at = CASE WHEN ${ended !== null} THEN now() END,
      lease_token = CASE WHEN ${ended === null} THEN ${randomUUID()}::uuid END,
      lease_expires_at = CASE WHEN ${ended === null} THEN now() + ${paceMs}::int * interval '1 millisecond' END
    WHERE id = ${recoveryId}
    RETURNING matched, replayed, woken, skipped`;
  if (totals === undefined) throw new Error(`recovery ${recoveryId} no longer exists`);
  return totals;
}
