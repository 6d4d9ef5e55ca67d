import {
  CONCURRENCY_PER_WORKER,
  createAddressFilter,
  createPortFilter,
  DELIVERY_DEADLINE_SECONDS,
  DNS_DEADLINE_SECONDS,
  LEASE_SECONDS,
  WEBHOOK_PORTS_DEFAULT,
} from '@callplane/core';
import { moveDueFloor } from '@callplane/db';
import { Beginnings } from '../../../apps/webhook-worker/src/deliveries/beginnings.js';
import { Doorbells } from '../../../apps/webhook-worker/src/deliveries/doorbells.js';
import { OpenClaims } from '../../../apps/webhook-worker/src/deliveries/open-claims.js';
import { OpenedSecrets } from '../../../apps/webhook-worker/src/deliveries/opened-secrets.js';
import { SCAN_FAST_MS, Scan } from '../../../apps/webhook-worker/src/deliveries/scan.js';
import { Settling } from '../../../apps/webhook-worker/src/deliveries/settling.js';
import { Workers } from '../../../apps/webhook-worker/src/deliveries/workers.js';
import type { Deps } from '../../../apps/webhook-worker/src/deps.js';
import { webhookMetrics } from '../../../apps/webhook-worker/src/metrics.js';
import { PinnedAgents } from '../../../apps/webhook-worker/src/sending/pinned-agents.js';
import { sweepRecoveries } from '../../../apps/webhook-worker/src/sweep/recoveries.js';
import { newRetentionPosition, sweepRetention } from '../../../apps/webhook-worker/src/sweep/retention.js';
import { sweepDeliveries, type SweepPosition } from '../../../apps/webhook-worker/src/sweep/sweep.js';
import { systemClock } from '../../../packages/runtime/src/index.js';
import { MASTER_KEYS } from '../secrets.js';
import { noMetrics } from './metrics.js';
import { openDatabase, periodicTasks, type Parts } from './tasks.js';

const SWEEP_INTERVAL_MS = 5000;
const RETENTION_INTERVAL_MS = 60_000;
/** A second in production, which would be most of the statements of a run. */
const RECOVERY_INTERVAL_MS = 10_000;
const CLAIMS_AHEAD = 4;
/** A public address: all receivers resolve to it. */
const ADDRESS = '93.184.216.34';

/**
 * As apps/webhook-worker/src/main.ts does.
 * @returns what ends its work when it is stopped.
 */
export function startWebhookWorker({ redis, databaseUrl, logger, name }: Parts): () => Promise<void> {
  const database = openDatabase(databaseUrl, { indexesOnly: true });
  const claimsDatabase = openDatabase(databaseUrl, { indexesOnly: true, poolMax: CONCURRENCY_PER_WORKER + 1 });
  const leaseMs = LEASE_SECONDS * 1000;
  const deps: Deps = {
    beginnings: new Beginnings(),
    database,
    claimsDatabase,
    openClaims: new OpenClaims(claimsDatabase.sql, leaseMs),
    settling: new Settling(database.sql, logger),
    producer: redis.producer(),
    logger,
    metrics: webhookMetrics(noMetrics),
    clock: systemClock,
    random: () => Math.random(),
    secrets: new OpenedSecrets(MASTER_KEYS),
    resolver: { resolve: () => Promise.resolve([ADDRESS]) },
    agents: new PinnedAgents({ idlePerAgentMax: CONCURRENCY_PER_WORKER }),
    isAllowedAddress: createAddressFilter([]),
    networkOf: () => null,
    isAllowedPort: createPortFilter(WEBHOOK_PORTS_DEFAULT),
    allowHttp: false,
    leaseMs,
    deliveryDeadlineMs: DELIVERY_DEADLINE_SECONDS * 1000,
    dnsDeadlineMs: DNS_DEADLINE_SECONDS * 1000,
  };
  const workers = new Workers(deps, 1, { slots: CONCURRENCY_PER_WORKER, ahead: CLAIMS_AHEAD });
  const doorbells = new Doorbells(deps, workers);
  redis.consume((job) => doorbells.received(job.jobId, job.deliveryId));
  const scan = new Scan(deps, workers, SWEEP_INTERVAL_MS);
  const sweepPosition: SweepPosition = { parkedFrom: null };
  const retention = newRetentionPosition();
  const { repeat, repeatElected } = periodicTasks('webhook-worker', name, database, logger);
  repeat('scan', SCAN_FAST_MS, () => scan.tick());
  repeatElected('due floor', SWEEP_INTERVAL_MS, async () => void (await moveDueFloor(database, 'deliveries')));
  repeatElected('deliveries', SWEEP_INTERVAL_MS, () => sweepDeliveries(deps, sweepPosition));
  repeatElected('recoveries', RECOVERY_INTERVAL_MS, (signal) => sweepRecoveries(deps, signal));
  repeatElected('retention', RETENTION_INTERVAL_MS, (signal) => sweepRetention(deps, signal, retention));
  return () => workers.drain();
}
