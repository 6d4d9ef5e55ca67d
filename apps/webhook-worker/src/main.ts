import {
  CONCURRENCY_PER_WORKER,
  createAddressFilter,
  createPortFilter,
  networkOf,
  parseAllowedNetworks,
  parseMasterKeys,
} from '@callplane/core';
import { Database, isDatabaseUnavailable, moveDueFloor, sweepLeases } from '@callplane/db';
import { JobProducer, JobWorker, QUEUE_NAMES, REDIS_TROUBLES, readRedisTarget } from '@callplane/queue';
import { AppProcess, orExit, redisEvents, systemClock } from '@callplane/runtime';
import { WebhookWorkerConfig } from './config.js';
import { Doorbells } from './deliveries/doorbells.js';
import { Beginnings } from './deliveries/beginnings.js';
import { OpenClaims } from './deliveries/open-claims.js';
import { OpenedSecrets } from './deliveries/opened-secrets.js';
import { SCAN_FAST_MS, Scan } from './deliveries/scan.js';
import { Settling } from './deliveries/settling.js';
import { Workers } from './deliveries/workers.js';
import type { Deps } from './deps.js';
import { systemResolver } from './destinations/resolver.js';
import { webhookMetrics } from './metrics.js';
import { PinnedAgents } from './sending/pinned-agents.js';
import { FailingEndpoints } from './sweep/failing-endpoints.js';
import { sweepRecoveries } from './sweep/recoveries.js';
import { newRetentionPosition, sweepRetention } from './sweep/retention.js';
import { sweepDeliveries, type SweepPosition } from './sweep/sweep.js';

// deliveries/README.md: the way of a delivery through this worker, and the file of each step.

const RETENTION_INTERVAL_MS = 60_000;
const RECOVERY_INTERVAL_MS = 1000;
/**
 * Deliveries that are claimed ahead while all slots are taken. Claims then come in batches, and a free slot finds its
 * next delivery already claimed. If a worker dies, each delivery that it holds has used an attempt, and is sent again
 * after its lease has expired. This applies to deliveries in the slots and to those claimed ahead.
 */
const CLAIMS_AHEAD = 4;
/**
 * BullMQ's lock of a doorbell. A doorbell ends at once. If a dead worker or a frozen Redis has left one behind, BullMQ
 * ignores all later ones of its endpoint until it returns the stalled job to the queue, after at most twice this time.
 */
const DOORBELL_LOCK_SECONDS = 5;
/** Concurrent doorbell jobs. Each job takes only a moment, however many deliveries are due. */
const DOORBELLS_AT_ONCE = 16;

const app = AppProcess.start('webhook-worker', WebhookWorkerConfig);
const { config, logger, metrics } = app;
const masterKeys = orExit('ENCRYPTION_KEYS', () => parseMasterKeys(config.ENCRYPTION_KEYS));
const isAllowedAddress = orExit('WEBHOOK_ALLOWED_CIDRS', () => createAddressFilter(config.WEBHOOK_ALLOWED_CIDRS));
const networks = parseAllowedNetworks(config.WEBHOOK_ALLOWED_CIDRS);
if (networks.length > 0) logger.info('webhook networks allowed', { networks: networks.map(({ name }) => name) });
const isAllowedPort = orExit('WEBHOOK_ALLOWED_PORTS', () => createPortFilter(config.WEBHOOK_ALLOWED_PORTS));

const databaseSettings = { ...app.databaseSettings, indexesOnly: true };
const database = app.ownDatabase(new Database(databaseSettings));
// At most three statements run at once, for any number of workers: a claim, a read for doorbells, and the scan. The
// maximum of the pool is higher, but the pool opens connections only as needed.
const claimsDatabase = app.own(
  'claims',
  new Database({ ...databaseSettings, poolMax: CONCURRENCY_PER_WORKER + 1, asynchronousCommit: true }),
);
const redis = orExit('REDIS_URL', () => readRedisTarget(config));
const producer = app.ownProducer(new JobProducer(redis, app.producerEvents(QUEUE_NAMES)), REDIS_TROUBLES);

const slots = config.WORKERS_PER_PROCESS * CONCURRENCY_PER_WORKER;
const agents = new PinnedAgents({ idlePerAgentMax: slots });
app.own('connections', {
  close: () => {
    agents.close();
    return Promise.resolve();
  },
});

const deps: Deps = {
  beginnings: new Beginnings(),
  database,
  claimsDatabase,
  openClaims: new OpenClaims(claimsDatabase.sql, config.LEASE_MS),
  settling: new Settling(database.sql, logger),
  producer,
  logger,
  metrics: webhookMetrics(metrics),
  clock: systemClock,
  random: Math.random,
  secrets: new OpenedSecrets(masterKeys),
  resolver: systemResolver(),
  agents,
  isAllowedAddress,
  networkOf: (address) => networkOf(networks, address),
  isAllowedPort,
  allowHttp: config.WEBHOOK_ALLOW_HTTP,
  leaseMs: config.LEASE_MS,
  deliveryDeadlineMs: config.DELIVERY_DEADLINE_MS,
  dnsDeadlineMs: config.DNS_DEADLINE_MS,
};

const workers = new Workers(deps, config.WORKERS_PER_PROCESS, {
  slots: CONCURRENCY_PER_WORKER,
  ahead: CLAIMS_AHEAD,
});
app.own('workers', { close: () => workers.drain() });
metrics.gauge(
  {
    name: 'callplane_webhook_in_flight',
    help: `Occupied slots of this process, out of ${CONCURRENCY_PER_WORKER} for each of its workers.`,
  },
  () => workers.inUse,
);
metrics.gauge({ name: 'callplane_webhook_slots', help: 'Slots of this process.' }, () => slots);
const doorbells = app.own('doorbells', new Doorbells(deps, workers));
app.own(
  'queue',
  new JobWorker({
    redisUrl: redis,
    queue: 'webhook-delivery',
    concurrency: DOORBELLS_AT_ONCE,
    lockSeconds: DOORBELL_LOCK_SECONDS,
    // Empty, because the scheduler looks for deliveries only once Redis has removed the job: the job id is the
    // endpoint, so BullMQ ignores the doorbell of any newer delivery while this job exists.
    process: () => undefined,
    onCompleted: ({ deliveryId }, jobId) => doorbells.received(jobId, deliveryId),
    events: {
      ...redisEvents(logger, 'webhook-delivery'),
      onJobError: (error) => logger.error('job failed', { queue: 'webhook-delivery', error }),
    },
  }),
);

const scan = new Scan(deps, workers, config.SWEEP_INTERVAL_MS);
const sweepPosition: SweepPosition = { parkedFrom: null };
const retentionPosition = newRetentionPosition();
const failing = new FailingEndpoints(deps, config.WEBHOOK_DISABLE_AFTER_DAYS);
app.repeat('scan', Math.min(SCAN_FAST_MS, config.SWEEP_INTERVAL_MS), () => scan.tick(), isDatabaseUnavailable);
app.repeat('failing endpoints', RETENTION_INTERVAL_MS, () => failing.count(), isDatabaseUnavailable);
const keepDueFloor = async (signal: AbortSignal): Promise<void> => {
  await moveDueFloor(database, 'deliveries', { signal });
};
// One process does each of these for all webhook workers.
const elections = app.elections(sweepLeases(database.sql, app.processName));
for (const [name, intervalMs, work] of [
  ['due floor', config.SWEEP_INTERVAL_MS, keepDueFloor],
  ['deliveries', config.SWEEP_INTERVAL_MS, (signal) => sweepDeliveries(deps, sweepPosition, signal)],
  ['recoveries', RECOVERY_INTERVAL_MS, (signal) => sweepRecoveries(deps, signal)],
  ['endpoint reports', RETENTION_INTERVAL_MS, () => failing.sweep()],
  ['retention', RETENTION_INTERVAL_MS, (signal) => sweepRetention(deps, signal, retentionPosition)],
] as const satisfies readonly (readonly [string, number, (signal: AbortSignal) => Promise<void>])[]) {
  app.repeatElected(elections, name, intervalMs, work, isDatabaseUnavailable);
}

const healthPort = await app.serveHealth(config);
await app.started('working', {
  queues: ['webhook-delivery'],
  workers: config.WORKERS_PER_PROCESS,
  concurrency: CONCURRENCY_PER_WORKER,
  healthPort,
});
