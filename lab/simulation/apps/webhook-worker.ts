import {
  CONCURRENCY_PER_WORKER,
  createAddressFilter,
  createPortFilter,
  DELIVERY_DEADLINE_SECONDS,
  DNS_DEADLINE_SECONDS,
  LEASE_SECONDS,
  WEBHOOK_PORTS_DEFAULT,
} from '@callplane/core';
import { OpenedSecrets } from '../../../apps/webhook-worker/src/deliveries/attempt.js';
import { SCAN_FAST_MS, Scan } from '../../../apps/webhook-worker/src/deliveries/scan.js';
import { Settling } from '../../../apps/webhook-worker/src/deliveries/settling.js';
import { Turns } from '../../../apps/webhook-worker/src/deliveries/turns.js';
import type { Deps } from '../../../apps/webhook-worker/src/deps.js';
import { webhookMetrics } from '../../../apps/webhook-worker/src/metrics.js';
import { PinnedAgents } from '../../../apps/webhook-worker/src/sending/pinned-agents.js';
import { sweepRetention, sweepDeliveries, sweepRecoveries } from '../../../apps/webhook-worker/src/sweep/sweep.js';
import { QUEUE_OF_LANE } from '../../../packages/queue/src/jobs/jobs.js';
import { systemClock } from '../../../packages/runtime/src/index.js';
import { MASTER_KEYS, noMetrics, openDatabase, periodicTasks, type Parts } from './tasks.js';

const SWEEP_INTERVAL_MS = 5000;
const RETENTION_INTERVAL_MS = 60_000;
/** A second in production, which would be most of the statements of a run. */
const RECOVERY_INTERVAL_MS = 10_000;
/** A public address: all receivers resolve to it. */
const ADDRESS = '93.184.216.34';

/**
 * As apps/webhook-worker/src/main.ts does.
 * @returns a function that ends its work.
 */
export function startWebhookWorker({ redis, databaseUrl, logger, name }: Parts): () => Promise<void> {
  const database = openDatabase(databaseUrl, { indexesOnly: true });
  const leaseMs = LEASE_SECONDS * 1000;
  const deps: Deps = {
    database,
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
  const turns = new Turns(deps);
  for (const queue of Object.values(QUEUE_OF_LANE)) {
    redis.consumeTurns(queue, (job, handed) => turns.take(job, handed));
  }
  const scan = new Scan(deps, turns, SWEEP_INTERVAL_MS);
  const { repeat, repeatElected } = periodicTasks('webhook-worker', name, database, logger);
  repeat('scan', SCAN_FAST_MS, () => scan.tick());
  repeatElected('deliveries', SWEEP_INTERVAL_MS, () => sweepDeliveries(deps));
  repeatElected('recoveries', RECOVERY_INTERVAL_MS, (signal) => sweepRecoveries(deps, signal));
  repeatElected('retention', RETENTION_INTERVAL_MS, (signal) => sweepRetention(deps, signal));
  return () => turns.drain();
}
