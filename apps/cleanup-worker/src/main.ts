import { CONCURRENCY_PER_WORKER } from '@callplane/core';
import { Database, isDatabaseUnavailable } from '@callplane/db';
import { JobProducer, JobWorker, QUEUE_OF_OPERATION } from '@callplane/queue';
import {
  createHealth,
  createLogger,
  Lifecycle,
  loadConfig,
  orExit,
  redisEvents,
  Repeating,
  startHealthServer,
  systemClock,
} from '@callplane/runtime';
import pLimit from 'p-limit';
import { CleanupWorkerConfig } from './config.js';
import type { Deps } from './deps.js';
import { openMediaNodes } from './media/open-media-nodes.js';
import { workOnOperation } from './operations/work-on-operation.js';
import { endEmptyRooms } from './reconcile/empty-rooms.js';
import { endLostSessions, forgetDeadInstances } from './reconcile/lost-sessions.js';
import { MediaOrphans } from './reconcile/media-orphans.js';
import { sweepExpired, sweepOperations } from './sweep/sweep.js';

const EXPIRED_INTERVAL_MS = 60_000;

const config = loadConfig(CleanupWorkerConfig);
const logger = createLogger(config, 'cleanup-worker');
const lifecycle = new Lifecycle(logger, config.SHUTDOWN_DEADLINE_MS);
lifecycle.handleSignals();

const database = new Database({
  url: config.DATABASE_URL,
  poolMax: config.DATABASE_POOL_MAX,
  onConnectionError: (error) => logger.warn('database connection lost', { error }),
});
lifecycle.onClose('database', () => database.close());

const producer = new JobProducer(config.REDIS_URL, redisEvents(logger, 'producer'));
lifecycle.onClose('producer', () => producer.close());

const media = orExit('MEDIA_NODES', () => openMediaNodes(config, Math.random));
lifecycle.onClose('media', () => media.close());
if (media.all().length === 0) logger.warn('no media server configured', { setting: 'MEDIA_NODES' });

const deps: Deps = {
  database,
  producer,
  media,
  logger,
  clock: systemClock,
  random: Math.random,
  leaseMs: config.LEASE_MS,
  graceMs: config.RECONNECT_GRACE_SECONDS * 1000,
};

// The contract's concurrency is per worker process, so the two queues share it.
const slots = pLimit(CONCURRENCY_PER_WORKER);
const workers = Object.values(QUEUE_OF_OPERATION).map(
  (queue) =>
    new JobWorker({
      redisUrl: config.REDIS_URL,
      queue,
      concurrency: CONCURRENCY_PER_WORKER,
      leaseSeconds: Math.ceil(config.LEASE_MS / 1000),
      process: ({ operationId }) => slots(() => workOnOperation(deps, operationId)),
      events: { ...redisEvents(logger, queue), onJobError: (error) => logger.error('job failed', { queue, error }) },
    }),
);
// At once: while one queue drains, the other takes nothing more.
lifecycle.onClose('queues', () => Promise.all(workers.map((worker) => worker.close())));

const orphans = new MediaOrphans(deps);
const emptyMs = config.ROOM_EMPTY_TIMEOUT_SECONDS * 1000;
// Each with a timer of its own: one that waits for a server holds up no other.
for (const [name, intervalMs, work] of [
  ['operations', config.SWEEP_INTERVAL_MS, () => sweepOperations(deps)],
  ['expired', EXPIRED_INTERVAL_MS, () => sweepExpired(deps)],
  ['lost sessions', config.SWEEP_INTERVAL_MS, () => endLostSessions(deps)],
  ['dead instances', config.SWEEP_INTERVAL_MS, () => forgetDeadInstances(deps)],
  ['media', config.SWEEP_INTERVAL_MS, () => orphans.pass()],
  ['empty rooms', config.SWEEP_INTERVAL_MS, () => (emptyMs === 0 ? Promise.resolve() : endEmptyRooms(deps, emptyMs))],
] as const) {
  const sweep = new Repeating(intervalMs, work, (error) => {
    logger.error(isDatabaseUnavailable(error) ? 'sweep waits for PostgreSQL' : 'sweep failed', { sweep: name, error });
  });
  lifecycle.onClose(`sweep ${name}`, () => sweep.close());
}

const health = createHealth(
  logger,
  {
    postgres: { ping: () => database.ping() },
    redis: { ping: () => Promise.all(workers.map((worker) => worker.ping())) },
  },
  () => lifecycle.isClosing,
);
const server = await startHealthServer(health, { host: config.HEALTH_HOST, port: config.HEALTH_PORT });
lifecycle.onClose('health', () => server.close());
logger.info('working', {
  queues: Object.values(QUEUE_OF_OPERATION),
  concurrency: CONCURRENCY_PER_WORKER,
  healthPort: server.port,
});
