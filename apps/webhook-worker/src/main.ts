import {
  CONCURRENCY_PER_WORKER,
  createAddressFilter,
  createPortFilter,
  networkOf,
  parseAllowedNetworks,
  parseMasterKeys,
  SHARED_SLOTS_MAX,
} from '@callplane/core';
import { Database, isDatabaseUnavailable, sweepLeases } from '@callplane/db';
import {
  JobProducer,
  JobWorkers,
  QUEUE_NAMES,
  QUEUE_OF_LANE,
  readRedisTarget,
  REDIS_TROUBLES,
  type TurnJob,
} from '@callplane/queue';
import { AppProcess, Elections, orExit, systemClock } from '@callplane/runtime';
import { WebhookWorkerConfig } from './config.js';
import { OpenedSecrets } from './deliveries/attempt.js';
import { SCAN_FAST_MS, Scan } from './deliveries/scan.js';
import { Settling } from './deliveries/settling.js';
import { Turns } from './deliveries/turns.js';
import type { Deps } from './deps.js';
import { systemResolver } from './destinations/resolver.js';
import { webhookMetrics } from './metrics.js';
import { PinnedAgents } from './sending/pinned-agents.js';
import { FailingEndpoints, sweepRetention, sweepDeliveries, sweepRecoveries } from './sweep/sweep.js';

// deliveries/README.md: the way of a delivery through this worker, and the file of each step.

const RETENTION_INTERVAL_MS = 60_000;
const RECOVERY_INTERVAL_MS = 1000;

const app = AppProcess.start('webhook-worker', WebhookWorkerConfig);
const { config, logger, metrics } = app;
const masterKeys = orExit('ENCRYPTION_KEYS', () => parseMasterKeys(config.ENCRYPTION_KEYS));
const isAllowedAddress = orExit('WEBHOOK_ALLOWED_CIDRS', () => createAddressFilter(config.WEBHOOK_ALLOWED_CIDRS));
const networks = parseAllowedNetworks(config.WEBHOOK_ALLOWED_CIDRS);
if (networks.length > 0) logger.info('webhook networks allowed', { networks: networks.map(({ name }) => name) });
const isAllowedPort = orExit('WEBHOOK_ALLOWED_PORTS', () => createPortFilter(config.WEBHOOK_ALLOWED_PORTS));

const database = app.ownDatabase(new Database({ ...app.databaseSettings, indexesOnly: true }));
const slots = config.WORKERS_PER_PROCESS * CONCURRENCY_PER_WORKER;
const redis = orExit('REDIS_URL', () => readRedisTarget(config));
const producer = app.ownProducer(new JobProducer(redis, app.producerEvents(QUEUE_NAMES)), REDIS_TROUBLES);

const proxyUrl = orExit('WEBHOOK_PROXY_URL', () =>
  config.WEBHOOK_PROXY_URL === undefined ? null : new URL(config.WEBHOOK_PROXY_URL),
);
const tunnel =
  proxyUrl === null
    ? null
    : {
        proxy: { url: proxyUrl, resolves: config.WEBHOOK_PROXY_RESOLVES },
        deadlineMs: config.DELIVERY_DEADLINE_MS,
      };
const agents = app.own('connections', new PinnedAgents({ idlePerAgentMax: slots, tunnel }));

const deps: Deps = {
  database,
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

const turns = new Turns(deps, config.WORKERS_PER_PROCESS);
metrics.gauge({ name: 'callplane_webhook_in_flight', help: 'Occupied slots of this process.' }, () => turns.inUse);
metrics.gauge({ name: 'callplane_webhook_slots', help: 'Slots of this process.' }, () => slots);
const events = {
  ...app.redisEvents('turns'),
  onFailed: (error: Error, job?: TurnJob) => logger.error('job failed', { endpointId: job?.endpointId, error }),
};
const jobs = new JobWorkers<TurnJob>({
  redisUrl: redis,
  // Turns that this process takes at once: in the fast lane, some of them wait for a slot, or settle.
  queues: { [QUEUE_OF_LANE.fast]: 2 * slots, [QUEUE_OF_LANE.slow]: config.WORKERS_PER_PROCESS * SHARED_SLOTS_MAX },
  work: turns.take.bind(turns),
  events,
});
app.own('turns', {
  async close() {
    await jobs.stop();
    await turns.drain();
    await jobs.close();
  },
});

const scan = new Scan(deps, turns, config.SWEEP_INTERVAL_MS);
const failing = new FailingEndpoints(deps, config.WEBHOOK_DISABLE_AFTER_DAYS);
app.repeat('scan', Math.min(SCAN_FAST_MS, config.SWEEP_INTERVAL_MS), () => scan.tick(), isDatabaseUnavailable);
app.repeat('failing endpoints', RETENTION_INTERVAL_MS, () => failing.count(), isDatabaseUnavailable);
// One process does each of these for all webhook workers.
const elections = new Elections(sweepLeases(database.sql, app.processName), app);
for (const [name, intervalMs, work] of [
  ['deliveries', config.SWEEP_INTERVAL_MS, () => sweepDeliveries(deps)],
  ['recoveries', RECOVERY_INTERVAL_MS, (signal) => sweepRecoveries(deps, signal)],
  ['endpoint reports', RETENTION_INTERVAL_MS, () => failing.sweep()],
  ['retention', RETENTION_INTERVAL_MS, (signal) => sweepRetention(deps, signal)],
] as const satisfies readonly (readonly [string, number, (signal: AbortSignal) => Promise<void>])[]) {
  app.repeatElected(elections, name, intervalMs, work, isDatabaseUnavailable);
}

const healthPort = await app.serveHealth(config);
await app.started('working', {
  queues: Object.values(QUEUE_OF_LANE),
  concurrency: slots,
  healthPort,
});
