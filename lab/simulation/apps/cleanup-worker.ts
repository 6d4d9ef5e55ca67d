import { CONCURRENCY_PER_WORKER, LEASE_SECONDS, QUEUE_OF_OPERATION, type OperationKind } from '@callplane/core';
import { probeWrite } from '@callplane/db';
import { Scan, SCAN_FAST_MS, settleExhausted, workOnOperation } from '@callplane/operations';
import pLimit from 'p-limit';
import type { Deps } from '../../../apps/cleanup-worker/src/deps.js';
import { cleanupMetrics, relayMetrics } from '../../../apps/cleanup-worker/src/metrics.js';
import { KINDS } from '../../../apps/cleanup-worker/src/operations/kinds.js';
import {
  endEmptyRooms,
  endLostSessions,
  forgetDeadInstances,
} from '../../../apps/cleanup-worker/src/reconcile/presence.js';
import { Forwards } from '../../../apps/cleanup-worker/src/reconcile/forwards.js';
import { MediaOrphans } from '../../../apps/cleanup-worker/src/reconcile/media-orphans.js';
import { OutageWatch, WATCH_EVERY_MS } from '../../../apps/cleanup-worker/src/reconcile/outage-watch.js';
import { createRelays } from '../../../apps/cleanup-worker/src/relays/relays.js';
import { sweepErasures, sweepExpired } from '../../../apps/cleanup-worker/src/sweep/sweep.js';
import { systemClock } from '../../../packages/runtime/src/index.js';
import { noMetrics, openDatabase, periodicTasks, type Parts } from './tasks.js';

const SWEEP_INTERVAL_MS = 5000;
const EXPIRED_INTERVAL_MS = 60_000;
const FORWARDS_INTERVAL_MS = 1000;
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
    metrics: cleanupMetrics(noMetrics),
    clock: systemClock,
    random: () => Math.random(),
    leaseMs: LEASE_SECONDS * 1000,
    graceMs: GRACE_MS,
    rosterFullMax: 100,
    outages,
  };
  const slots = pLimit(CONCURRENCY_PER_WORKER);
  const work = (operationId: string): Promise<number | null> => slots(() => workOnOperation(deps, operationId, KINDS));
  const names = Object.keys(KINDS) as OperationKind[];
  const scan = new Scan(deps, names, SWEEP_INTERVAL_MS, work);
  for (const name of names) {
    redis.work(QUEUE_OF_OPERATION[name], CONCURRENCY_PER_WORKER, work, (error) =>
      logger.error('operation job failed', { error }),
    );
  }
  const forwards = new Forwards(deps);
  const orphans = new MediaOrphans(deps, forwards);
  const { repeat, repeatElected } = periodicTasks('cleanup-worker', name, database, logger);
  repeat('scan', SCAN_FAST_MS, (signal) => scan.tick(signal));
  repeat('outage watch', WATCH_EVERY_MS, () => outages.look());
  repeat('media', SWEEP_INTERVAL_MS, () => orphans.pass());
  repeat('closing forwards', FORWARDS_INTERVAL_MS, async () => (forwards.arePossible ? forwards.close() : undefined));
  repeatElected('exhausted', SWEEP_INTERVAL_MS, () => settleExhausted(deps, KINDS));
  repeatElected('forwards', EXPIRED_INTERVAL_MS, () => forwards.close());
  repeatElected('expired', EXPIRED_INTERVAL_MS, () => sweepExpired(deps));
  // Every minute in production, which is longer than the end of a run.
  repeatElected('erasures', SWEEP_INTERVAL_MS, (signal) => sweepErasures(deps, signal));
  repeatElected('lost sessions', SWEEP_INTERVAL_MS, () => endLostSessions(deps));
  repeatElected('dead instances', SWEEP_INTERVAL_MS, () => forgetDeadInstances(deps));
  repeatElected('empty rooms', SWEEP_INTERVAL_MS, () => endEmptyRooms(deps, ROOM_EMPTY_MS));
}
