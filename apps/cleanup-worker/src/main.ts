import { CONCURRENCY_PER_WORKER } from '@callplane/core';
import { Database, isDatabaseUnavailable, probeWrite, sweepLeases } from '@callplane/db';
import { runOperations } from '@callplane/operations';
import { JobProducer, QUEUE_NAMES, readRedisTarget, REDIS_TROUBLES } from '@callplane/queue';
import { AppProcess, Elections, orExit, systemClock } from '@callplane/runtime';
import { CleanupWorkerConfig } from './config.js';
import type { Deps } from './deps.js';
import { followRegistry, openMediaNodes, untilNodesUp } from './media/media-clean-up.js';
import { cleanupMetrics, relayMetrics } from './metrics.js';
import { Certificates } from './observe/certificates.js';
import { Observer, RedisObserver } from './observe/observe.js';
import { KINDS } from './operations/kinds.js';
import { createRelays, parseTurnServers } from './relays/relays.js';
import { closeEndedRelays, endEmptyRooms, endLostSessions, forgetDeadInstances } from './reconcile/presence.js';
import { Forwards } from './reconcile/forwards.js';
import { MediaOrphans } from './reconcile/media-orphans.js';
import { OutageWatch, WATCH_EVERY_MS } from './reconcile/outage-watch.js';
import { sweepErasures, sweepExpired, sweepRooms, sweepUsage } from './sweep/sweep.js';

// README.md beside this file: the way of an operation from its row to its notice, and the file of each step.

const EXPIRED_INTERVAL_MS = 60_000;
const CERTIFICATES_INTERVAL_MS = 600_000;
const REGISTRY_INTERVAL_MS = 5000;
/** Prometheus usually scrapes every 15 s. */
const OBSERVE_INTERVAL_MS = 5000;
/** A part of the time that a forward stays without receivers. */
const FORWARDS_INTERVAL_MS = 1000;
/** Roughly the maximum time for which a client can use a relay that it allocates after its session has ended. */
const RELAYS_INTERVAL_MS = 2000;

const app = AppProcess.start('cleanup-worker', CleanupWorkerConfig);
const { config, logger, metrics } = app;
const database = app.ownDatabase(new Database(app.databaseSettings));
const redis = orExit('REDIS_URL', () => readRedisTarget(config));
const producer = app.ownProducer(new JobProducer(redis, app.producerEvents(QUEUE_NAMES)), REDIS_TROUBLES);

const media = app.own(
  'media',
  orExit('MEDIA_NODES', () => openMediaNodes(config, database, Math.random)),
);
if (config.MEDIA_API_SECRET === undefined || config.MEDIA_ADMIN_KEY === undefined) {
  logger.warn('no media server configured', { settings: ['MEDIA_API_SECRET', 'MEDIA_ADMIN_KEY'] });
}

const turnServers = orExit('TURN_ADMIN_URLS', () =>
  parseTurnServers(config.TURN_ADMIN_URLS, config.TURN_ADMIN_PASSWORD),
);
if (turnServers.length === 0) logger.warn('relays of ended sessions stay open', { setting: 'TURN_ADMIN_URLS' });

const outages = new OutageWatch(() => probeWrite(database.sql));
metrics.gauge(
  {
    name: 'callplane_lost_sessions_paused',
    help: '1 while this process ends no session of a silent gateway or client, because it has just started, or PostgreSQL accepted no writes lately.',
  },
  () => (outages.isSettled ? 0 : 1),
);
const deps: Deps = {
  database,
  producer,
  media,
  relays: createRelays(turnServers, relayMetrics(metrics)),
  logger,
  metrics: cleanupMetrics(metrics),
  clock: systemClock,
  random: Math.random,
  leaseMs: config.LEASE_MS,
  graceMs: config.RECONNECT_GRACE_SECONDS * 1000,
  rosterFullMax: config.ROSTER_FULL_MAX,
  outages,
};

// An operation whose media server is unreachable costs an attempt. The periodic read of the registry reports errors.
await media.refresh().catch(() => undefined);
await untilNodesUp(media);

// One process does each task of an election for all cleanup workers.
const elections = new Elections(sweepLeases(database.sql, app.processName), app);
runOperations(app, deps, KINDS, { redis, elections, sweepIntervalMs: config.SWEEP_INTERVAL_MS });

const forwards = new Forwards(deps);
const orphans = new MediaOrphans(deps, forwards);
// On a connection of its own, because the metrics matter most while all others wait for a standby.
const observing = app.own('observing', new Database({ ...app.databaseSettings, poolMax: 1 }));
const observer = new Observer({ ...deps, database: observing }, metrics, config.ROOM_RETENTION_DAYS);
const redisObserver = new RedisObserver(producer.redis, metrics);
const certificates = new Certificates(config.TLS_SERVERS, metrics, logger, () => systemClock.now());
const emptyMs = config.ROOM_EMPTY_TIMEOUT_SECONDS * 1000;
// Every repeated task has its own timer, so that one that waits for a server does not delay the others.
for (const [name, intervalMs, work] of [
  ['outage watch', WATCH_EVERY_MS, () => outages.look()],
  ['media', config.SWEEP_INTERVAL_MS, () => orphans.pass()],
  ['closing forwards', FORWARDS_INTERVAL_MS, async () => (forwards.arePossible ? forwards.close() : undefined)],
  ['media registry', REGISTRY_INTERVAL_MS, () => followRegistry(deps)],
  ['relays', RELAYS_INTERVAL_MS, () => closeEndedRelays(deps)],
  ['observe', OBSERVE_INTERVAL_MS, () => observer.pass()],
  ['observe redis', OBSERVE_INTERVAL_MS, () => redisObserver.pass()],
  ['certificates', CERTIFICATES_INTERVAL_MS, () => certificates.pass()],
] as const) {
  app.repeat(name, intervalMs, work, isDatabaseUnavailable);
}
for (const [name, intervalMs, work] of [
  ['expired', EXPIRED_INTERVAL_MS, () => sweepExpired(deps)],
  ['erasures', EXPIRED_INTERVAL_MS, (signal: AbortSignal) => sweepErasures(deps, signal)],
  ['usage', EXPIRED_INTERVAL_MS, () => sweepUsage(deps)],
  ['rooms', EXPIRED_INTERVAL_MS, (signal: AbortSignal) => sweepRooms(deps, config.ROOM_RETENTION_DAYS, signal)],
  ['lost sessions', config.SWEEP_INTERVAL_MS, () => endLostSessions(deps)],
  ['dead instances', config.SWEEP_INTERVAL_MS, () => forgetDeadInstances(deps)],
  ['empty rooms', config.SWEEP_INTERVAL_MS, () => endEmptyRooms(deps, emptyMs)],
  // Of rooms that used several media servers for a moment only.
  ['forwards', EXPIRED_INTERVAL_MS, () => forwards.close()],
] as const) {
  app.repeatElected(elections, name, intervalMs, work, isDatabaseUnavailable);
}

const healthPort = await app.serveHealth(config);
await app.started('working', {
  kinds: Object.keys(KINDS),
  concurrency: CONCURRENCY_PER_WORKER,
  healthPort,
});
