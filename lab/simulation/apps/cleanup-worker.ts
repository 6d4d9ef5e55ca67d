import { CONCURRENCY_PER_WORKER, LEASE_SECONDS } from '@callplane/core';
import { isDatabaseUnavailable, moveDueFloor, probeWrite } from '@callplane/db';
import type { Deps } from '../../../apps/cleanup-worker/src/deps.js';
import { operationMetrics, relayMetrics } from '../../../apps/cleanup-worker/src/metrics.js';
import { workOnOperation } from '../../../apps/cleanup-worker/src/operations/work-on-operation.js';
import { endEmptyRooms } from '../../../apps/cleanup-worker/src/reconcile/empty-rooms.js';
import {
  endLostSessions,
  forgetDeadInstances,
  newLostSessionsPosition,
} from '../../../apps/cleanup-worker/src/reconcile/lost-sessions.js';
import { MediaOrphans } from '../../../apps/cleanup-worker/src/reconcile/media-orphans.js';
import { OutageWatch, WATCH_EVERY_MS } from '../../../apps/cleanup-worker/src/reconcile/outage-watch.js';
import { createRelays } from '../../../apps/cleanup-worker/src/relays/relays.js';
import { DueOperations } from '../../../apps/cleanup-worker/src/scheduler/due-operations.js';
import { OperationScheduler } from '../../../apps/cleanup-worker/src/scheduler/scheduler.js';
import { sweepErasures } from '../../../apps/cleanup-worker/src/sweep/erasures.js';
import { newExpiredPosition, settleExhausted, sweepExpired } from '../../../apps/cleanup-worker/src/sweep/sweep.js';
import { systemClock } from '../../../packages/runtime/src/index.js';
import { noMetrics } from './metrics.js';
import { openDatabase, periodicTasks, type Parts } from './tasks.js';

const SWEEP_INTERVAL_MS = 5000;
const EXPIRED_INTERVAL_MS = 60_000;
/** Long enough that the empty rooms of a run last for a while. */
const ROOM_EMPTY_MS = 60_000;
export const GRACE_MS = 15_000;

/** As apps/cleanup-worker/src/main.ts does. */
export function startCleanupWorker({ redis, media, databaseUrl, logger, name }: Parts): void {
  const database = openDatabase(databaseUrl);
  const producer = redis.producer();
  const outages = new OutageWatch(() => probeWrite(database.sql));
  const deps: Deps = {
    database,
    producer,
    media: media.nodes(),
    relays: createRelays([], relayMetrics(noMetrics)),
    logger,
    metrics: operationMetrics(noMetrics),
    clock: systemClock,
    random: () => Math.random(),
    leaseMs: LEASE_SECONDS * 1000,
    graceMs: GRACE_MS,
    outages,
  };
  const due = new DueOperations(deps);
  const scheduler = new OperationScheduler({
    slots: CONCURRENCY_PER_WORKER,
    scanIntervalMs: SWEEP_INTERVAL_MS,
    work: (operationId) => workOnOperation(deps, operationId),
    scan: (scan) => due.take(scan),
    jobsArrive: () => producer.health.trouble === null,
    onError: (error) =>
      logger.error(isDatabaseUnavailable(error) ? 'scheduler waits for PostgreSQL' : 'scheduler failed', { error }),
  });
  for (const queue of ['room-end', 'participant-remove'] as const) {
    redis.consume(queue, (job) => {
      scheduler.announce({ id: job.operationId, environmentId: job.environmentId });
    });
  }
  const orphans = new MediaOrphans(deps);
  const lostSessions = newLostSessionsPosition();
  const expired = newExpiredPosition();
  const { repeat, repeatElected } = periodicTasks('cleanup-worker', name, database, logger);
  repeat('outage watch', WATCH_EVERY_MS, () => outages.look());
  repeat('media', SWEEP_INTERVAL_MS, () => orphans.pass());
  repeatElected('due floor', SWEEP_INTERVAL_MS, async () => void (await moveDueFloor(database, 'operations')));
  repeatElected('exhausted', SWEEP_INTERVAL_MS, () => settleExhausted(deps));
  repeatElected('expired', EXPIRED_INTERVAL_MS, () => sweepExpired(deps, expired));
  // Every minute in production, which is longer than the end of a run.
  repeatElected('erasures', SWEEP_INTERVAL_MS, (signal) => sweepErasures(deps, signal));
  repeatElected('lost sessions', SWEEP_INTERVAL_MS, () => endLostSessions(deps, lostSessions));
  repeatElected('dead instances', SWEEP_INTERVAL_MS, () => forgetDeadInstances(deps));
  repeatElected('empty rooms', SWEEP_INTERVAL_MS, () => endEmptyRooms(deps, ROOM_EMPTY_MS));
}
