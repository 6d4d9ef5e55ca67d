import { CONCURRENCY_PER_WORKER, createAddressJudge, parseMasterKeys } from '@callplane/core';
import { Database, glanceAtDeliveries, isDatabaseUnavailable } from '@callplane/db';
import { JobProducer, JobWorker } from '@callplane/queue';
import {
  addDatabaseMetrics,
  createHealth,
  createLogger,
  createMetrics,
  Lifecycle,
  loadConfig,
  orExit,
  redisEvents,
  Repeating,
  serveMetrics,
  startHealthServer,
  systemClock,
} from '@callplane/runtime';
import { WebhookWorkerConfig } from './config.js';
import { Claiming } from './deliveries/claiming.js';
import { Dispatcher, LOOKERS } from './deliveries/dispatcher.js';
import { OpenedSecrets } from './deliveries/opened-secrets.js';
import { Senders } from './deliveries/senders.js';
import { Settling } from './deliveries/settling.js';
import { attemptDelivery } from './deliveries/work-on-delivery.js';
import type { Deps } from './deps.js';
import { systemResolver } from './destinations/resolver.js';
import { webhookMetrics } from './metrics.js';
import { PinnedAgents } from './sending/pinned-agents.js';
import { FailingEndpoints } from './sweep/failing-endpoints.js';
import { sweepRecoveries } from './sweep/recoveries.js';
import { sweepRetention } from './sweep/retention.js';
import { sweepDeliveries } from './sweep/sweep.js';

const RETENTION_INTERVAL_MS = 60_000;
const RECOVERY_INTERVAL_MS = 1000;
/** Suspects share so many of a worker's slots; see docs/webhooks.md. */
const SUSPECTS_MAX = 2;

/**
 * So many deliveries of proven endpoints are claimed while all slots are taken: claims then come several at once, and a
 * slot that comes free finds the next one claimed. A worker that dies costs these, too, one lease and one attempt.
 */
const CLAIMS_AHEAD = 4;

const config = loadConfig(WebhookWorkerConfig);
const masterKeys = orExit('ENCRYPTION_KEYS', () => parseMasterKeys(config.ENCRYPTION_KEYS));
const isAllowedAddress = orExit('WEBHOOK_ALLOWED_CIDRS', () => createAddressJudge(config.WEBHOOK_ALLOWED_CIDRS));
const logger = createLogger(config, 'webhook-worker');
const metrics = createMetrics({ app: 'webhook-worker' });
const lifecycle = new Lifecycle(logger, config.SHUTDOWN_DEADLINE_MS);
lifecycle.handleSignals();

const onConnectionError = (error: Error): void => logger.warn('database connection lost', { error });
const database = new Database({
  url: config.DATABASE_URL,
  poolMax: config.DATABASE_POOL_MAX,
  indexesOnly: true,
  onConnectionError,
});
lifecycle.onClose('database', () => database.close());
addDatabaseMetrics(metrics, () => database.connections());
const claims = new Database({
  url: config.DATABASE_URL,
  poolMax: CONCURRENCY_PER_WORKER + 1,
  asynchronousCommit: true,
  indexesOnly: true,
  onConnectionError,
});
lifecycle.onClose('claims', () => claims.close());

const producer = new JobProducer(config.REDIS_URL, redisEvents(logger, 'producer'));
lifecycle.onClose('producer', () => producer.close());

const agents = new PinnedAgents();
lifecycle.onClose('connections', () => {
  agents.close();
  return Promise.resolve();
});

const deps: Deps = {
  database,
  claims,
  claiming: new Claiming(claims.hot, config.LEASE_MS),
  settling: new Settling(database.hot, logger),
  senders: new Senders(CONCURRENCY_PER_WORKER),
  producer,
  logger,
  metrics: webhookMetrics(metrics),
  clock: systemClock,
  random: Math.random,
  secrets: new OpenedSecrets(masterKeys),
  resolver: systemResolver(),
  agents,
  isAllowedAddress,
  allowHttp: config.WEBHOOK_ALLOW_HTTP,
  leaseMs: config.LEASE_MS,
  deliveryDeadlineMs: config.DELIVERY_DEADLINE_MS,
  dnsDeadlineMs: config.DNS_DEADLINE_MS,
};

const dispatcher = new Dispatcher({
  total: CONCURRENCY_PER_WORKER + CLAIMS_AHEAD,
  suspectsMax: SUSPECTS_MAX,
  random: Math.random,
  glance: (ids) => glanceAtDeliveries(claims.hot, ids),
  work: (deliveryId) => attemptDelivery(deps, deliveryId),
});
metrics.gauge(
  { name: 'callplane_webhook_in_flight', help: `Slots of this worker that are taken, of ${CONCURRENCY_PER_WORKER}.` },
  () => deps.senders.inUse,
);
const worker = new JobWorker({
  redisUrl: config.REDIS_URL,
  queue: 'webhook-delivery',
  concurrency: LOOKERS,
  leaseSeconds: Math.ceil(config.LEASE_MS / 1000),
  process: ({ deliveryId }) => dispatcher.process(deliveryId),
  events: {
    ...redisEvents(logger, 'webhook-delivery'),
    onJobError: (error) => logger.error('job failed', { queue: 'webhook-delivery', error }),
  },
});
lifecycle.onClose('queue', () => {
  dispatcher.drain();
  deps.senders.drain();
  return worker.close();
});

const failing = new FailingEndpoints(deps, config.WEBHOOK_DISABLE_AFTER_DAYS);
for (const [name, intervalMs, work] of [
  ['deliveries', config.SWEEP_INTERVAL_MS, () => sweepDeliveries(deps, dispatcher.known)],
  ['recoveries', RECOVERY_INTERVAL_MS, (signal) => sweepRecoveries(deps, signal)],
  ['failing endpoints', RETENTION_INTERVAL_MS, () => failing.sweep()],
  ['retention', RETENTION_INTERVAL_MS, (signal) => sweepRetention(deps, signal)],
] as const satisfies readonly (readonly [string, number, (signal: AbortSignal) => Promise<void>])[]) {
  const sweep = new Repeating(intervalMs, work, (error) => {
    logger.error(isDatabaseUnavailable(error) ? 'sweep waits for PostgreSQL' : 'sweep failed', { sweep: name, error });
  });
  lifecycle.onClose(`sweep ${name}`, () => sweep.close());
}

const health = createHealth(
  logger,
  { postgres: { ping: () => database.ping() }, redis: { ping: () => worker.ping() } },
  () => lifecycle.isClosing,
);
const server = await startHealthServer(health, { host: config.HEALTH_HOST, port: config.HEALTH_PORT });
lifecycle.onClose('health', () => server.close());
const metricsPort = await serveMetrics(metrics, config, lifecycle);
logger.info('working', {
  queues: ['webhook-delivery'],
  concurrency: CONCURRENCY_PER_WORKER,
  healthPort: server.port,
  metricsPort,
});
