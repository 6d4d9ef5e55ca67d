import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Database, loadVerificationKeys, nodeLoads } from '@callplane/db';
import { MediaNodes, parseMediaNodes } from '@callplane/media';
import { JobProducer, NoticeListener, RoomBus } from '@callplane/queue';
import {
  addDatabaseMetrics,
  createHealth,
  createLogger,
  createMetrics,
  Lifecycle,
  loadConfig,
  orExit,
  redisEvents,
  serveMetrics,
  systemClock,
} from '@callplane/runtime';
import { SignalingConfig } from './config.js';
import { createCallerAddress } from './connections/caller-address.js';
import { acceptUpgrades } from './connections/upgrade.js';
import { demoPages } from './demo/demo-pages.js';
import type { Deps } from './deps.js';
import { Gateway } from './gateway.js';
import { MediaPlaces } from './media/media-places.js';
import { addSignalingGauges, signalingMetrics } from './metrics.js';
import { listen } from './server.js';
import { VerificationKeys } from './sessions/verification-keys.js';

const config = loadConfig(SignalingConfig);
const nodeAddresses = orExit('MEDIA_NODES', () => parseMediaNodes(config.MEDIA_NODES.join(',')));
const mediaSecrets = orExit('MEDIA_API_SECRET and MEDIA_ADMIN_KEY', () => secretsFor(nodeAddresses.length));
const callerAddress = orExit('TRUST_PROXY', () => createCallerAddress(config.TRUST_PROXY));
const instanceId = `${hostname().slice(0, 40)}-${randomUUID()}`;
const logger = createLogger(config, 'signaling').child({ instanceId });
const metrics = createMetrics({ app: 'signaling' });
const lifecycle = new Lifecycle(logger, config.SHUTDOWN_DEADLINE_MS);
lifecycle.handleSignals();

const onConnectionError = (error: Error): void => logger.warn('database connection lost', { error });
const database = new Database({ url: config.DATABASE_URL, poolMax: config.DATABASE_POOL_MAX, onConnectionError });
lifecycle.onClose('database', () => database.close());
addDatabaseMetrics(metrics, () => database.connections());
const heartbeats = new Database({ url: config.DATABASE_URL, poolMax: 1, onConnectionError });
lifecycle.onClose('heartbeats', () => heartbeats.close());

const producer = new JobProducer(config.REDIS_URL, redisEvents(logger, 'producer'));
lifecycle.onClose('producer', () => producer.close());

const notices = new NoticeListener(config.REDIS_URL, redisEvents(logger, 'notices'));
lifecycle.onClose('notices', () => notices.close());

const roomEvents = redisEvents(logger, 'rooms');
const bus = new RoomBus({
  redisUrl: config.REDIS_URL,
  instanceId,
  publisher: producer.redis,
  events: {
    ...roomEvents,
    onReady: () => {
      roomEvents.onReady();
      gateway.resync();
    },
  },
});
lifecycle.onClose('room bus', () => bus.close());

const nodes = MediaNodes.open({ addresses: nodeAddresses, ...mediaSecrets, random: Math.random });
lifecycle.onClose('media nodes', () => nodes.close());
for (const node of nodes.all()) {
  node.on('up', () => logger.info('media server up', { node: node.id }));
  node.on('down', (error) => logger.warn('media server down', { node: node.id, error }));
}
if (nodeAddresses.length === 0) logger.warn('no media server configured', { setting: 'MEDIA_NODES' });

const keys = new VerificationKeys(() => loadVerificationKeys(database.prisma, systemClock.now()));
notices.on('signingKeysChanged', () => keys.expire());

const deps: Deps = {
  instanceId,
  database,
  databasePoolMax: config.DATABASE_POOL_MAX,
  producer,
  bus,
  places: new MediaPlaces(nodes, () => nodeLoads(database.hot)),
  keys,
  tokens: { issuer: config.TOKEN_ISSUER, audience: config.TOKEN_AUDIENCE },
  turn: {
    stunUrls: config.STUN_URLS,
    turnUrls: config.TURN_URLS,
    secret: config.TURN_SECRET ?? null,
    ttlSeconds: config.TURN_TTL_SECONDS,
  },
  reconnectGraceSeconds: config.RECONNECT_GRACE_SECONDS,
  pingIntervalSeconds: config.PING_INTERVAL_SECONDS,
  metrics: signalingMetrics(metrics),
  logger,
  clock: systemClock,
};
if (deps.turn.secret === null) logger.warn('no TURN relay configured', { setting: 'TURN_SECRET' });

const gateway = Gateway.open(deps, heartbeats, {
  connections: {
    general: { perSecond: config.RATE_LIMIT_SIGNALING_PER_SECOND, burst: config.RATE_LIMIT_SIGNALING_BURST },
    messages: { perSecond: config.RATE_LIMIT_MESSAGES_PER_SECOND, burst: config.RATE_LIMIT_MESSAGES_BURST },
    metadata: { perSecond: config.RATE_LIMIT_METADATA_PER_SECOND, burst: config.RATE_LIMIT_METADATA_BURST },
  },
  mediaNodeDeadSeconds: config.MEDIA_NODE_DEAD_SECONDS,
});
lifecycle.onClose('gateway', () => gateway.close());
addSignalingGauges(metrics, {
  connections: () => gateway.connections.count,
  sessions: () => gateway.sessions.count,
  mediaNodes: () => nodes.all(),
});

const health = createHealth(
  logger,
  {
    postgres: { ping: () => database.ping() },
    redis: { ping: () => producer.redis.ping(), optional: true },
    ...(nodeAddresses.length === 0 ? {} : { media: { ping: pingMedia, optional: true } }),
  },
  () => lifecycle.isClosing,
);
const pages = config.NODE_ENV === 'development' ? demoPages(config, logger) : () => false;
const listening = await listen(health, pages, { host: config.HOST, port: config.PORT });
acceptUpgrades(listening.server, gateway.connections, {
  allowedOrigins: config.ALLOWED_ORIGINS,
  connectionsMax: config.MAX_CONNECTIONS,
  isDraining: () => lifecycle.isClosing,
  callerAddress,
});
// Closed first: no new connections while the others are sent away.
lifecycle.onClose('server', () => listening.close());
const metricsPort = await serveMetrics(metrics, config, lifecycle);
logger.info('listening', {
  host: config.HOST,
  port: listening.port,
  mediaNodes: nodeAddresses.map(({ id }) => id),
  metricsPort,
});

function secretsFor(nodeCount: number): { apiSecret: string; adminKey: string } {
  const { MEDIA_API_SECRET: apiSecret = '', MEDIA_ADMIN_KEY: adminKey = '' } = config;
  if (nodeCount > 0 && (apiSecret === '' || adminKey === '')) throw new Error('are required together with MEDIA_NODES');
  return { apiSecret, adminKey };
}

function pingMedia(): Promise<void> {
  return nodes.up().length > 0 ? Promise.resolve() : Promise.reject(new Error('no media server is up'));
}
