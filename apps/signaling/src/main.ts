import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Database, isDatabaseUnavailable, listRegisteredNodes, loadVerificationKeys, nodeLoads } from '@callplane/db';
import { MediaNodes, parseMediaNodes } from '@callplane/media';
import { JobProducer, NoticeListener, QUEUE_NAMES, REDIS_TROUBLES, RoomBus, readRedisTarget } from '@callplane/queue';
import { AppProcess, orExit, readTurnSettings, startHealthServer, systemClock } from '@callplane/runtime';
import { ArrivalLimits } from './arrivals/limits.js';
import { VerificationKeys } from './arrivals/token.js';
import { SignalingConfig } from './config.js';
import { acceptUpgrades, createCallerAddress } from './connections/door.js';
import { Gateway, type Deps } from './gateway.js';
import { forwardLimits } from './media/forwards.js';
import { logMediaNodes, MediaPlaces } from './media/places.js';
import { addSignalingGauges, signalingMetrics } from './metrics.js';
import { WhipServer } from './whip/whip-server.js';
import { StreamRates } from './requests/stream-rates.js';

/** How often the gateway reads the registry of media servers: a new one gets rooms within this time without Redis. */
const REGISTRY_EVERY_MS = 5000;

const instanceId = `${hostname().slice(0, 40)}-${randomUUID()}`;
const app = AppProcess.start('signaling', SignalingConfig, { instanceId });
const { config, logger, metrics, lifecycle } = app;
const nodeAddresses = orExit('MEDIA_NODES', () => parseMediaNodes(config.MEDIA_NODES.join(',')));
const mediaSecrets = orExit('MEDIA_API_SECRET and MEDIA_ADMIN_KEY', () => secretsFor(nodeAddresses.length));
const hasMedia = mediaSecrets.apiSecret !== '' && mediaSecrets.adminKey !== '';
const callerAddress = orExit('TRUST_PROXY', () => createCallerAddress(config.TRUST_PROXY));

const database = app.ownDatabase(new Database(app.databaseSettings));
const heartbeats = app.own('heartbeats', new Database({ ...app.databaseSettings, poolMax: 1 }));
const redis = orExit('REDIS_URL', () => readRedisTarget(config));
const producer = app.ownProducer(new JobProducer(redis, app.producerEvents(QUEUE_NAMES)), REDIS_TROUBLES);
const notices = app.ownSubscriber('notices', new NoticeListener(redis, app.redisEvents('notices')));

const roomEvents = app.redisEvents('rooms');
const bus = new RoomBus({
  redisUrl: redis,
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
app.ownSubscriber('rooms', bus);

const nodes = app.own(
  'media nodes',
  MediaNodes.open({
    addresses: nodeAddresses,
    ...mediaSecrets,
    random: Math.random,
    allowOutdated: config.MEDIA_ALLOW_OUTDATED,
    readRegistry: hasMedia ? () => listRegisteredNodes(database.sql) : undefined,
  }),
);
logMediaNodes(nodes, logger);
if (!hasMedia) logger.warn('no media server configured', { settings: ['MEDIA_API_SECRET', 'MEDIA_ADMIN_KEY'] });

const keys = new VerificationKeys(() => loadVerificationKeys(database.sql, systemClock.now()));
notices.on('signingKeysChanged', () => keys.expire());
notices.on('mediaNodesChanged', () => void readRegistry());

const measured = signalingMetrics(metrics);
const deps: Deps = {
  instanceId,
  database,
  databasePoolMax: config.DATABASE_POOL_MAX,
  producer,
  bus,
  places: new MediaPlaces(
    nodes,
    () => nodeLoads(database.sql),
    config.MEDIA_NODES_PER_ROOM,
    config.MEDIA_REGION ?? null,
  ),
  forwardLimits: orExit('MEDIA_FORWARD_PORTS', () => forwardLimits(config.MEDIA_FORWARD_PORTS)),
  keys,
  tokens: { issuer: config.TOKEN_ISSUER, audience: config.TOKEN_AUDIENCE },
  turn: readTurnSettings(config, logger),
  rosterFullMax: config.ROSTER_FULL_MAX,
  reconnectGraceSeconds: config.RECONNECT_GRACE_SECONDS,
  pingIntervalSeconds: config.PING_INTERVAL_SECONDS,
  connectionLimit: { perSecond: config.RATE_LIMIT_SIGNALING_PER_SECOND, burst: config.RATE_LIMIT_SIGNALING_BURST },
  mediaNodeDeadSeconds: config.MEDIA_NODE_DEAD_SECONDS,
  requestLimits: {
    messages: { perSecond: config.RATE_LIMIT_MESSAGES_PER_SECOND, burst: config.RATE_LIMIT_MESSAGES_BURST },
    metadata: { perSecond: config.RATE_LIMIT_METADATA_PER_SECOND, burst: config.RATE_LIMIT_METADATA_BURST },
  },
  streamRates: new StreamRates(config.RATE_LIMIT_STREAMS_KIB_PER_SECOND),
  arrivalLimits: new ArrivalLimits(
    {
      joins: { perMinute: config.RATE_LIMIT_JOINS_PER_MINUTE, burst: config.RATE_LIMIT_JOINS_BURST },
      resumptions: { perMinute: config.RATE_LIMIT_RESUMPTIONS_PER_MINUTE, burst: config.RATE_LIMIT_RESUMPTIONS_BURST },
      failures: {
        perMinute: config.RATE_LIMIT_FAILED_ARRIVALS_PER_MINUTE,
        burst: config.RATE_LIMIT_FAILED_ARRIVALS_BURST,
      },
    },
    { metrics: measured, logger },
  ),
  metrics: measured,
  logger,
  clock: systemClock,
};

const gateway = new Gateway(deps, heartbeats);
app.own('gateway', gateway);
addSignalingGauges(metrics, {
  connections: () => gateway.connections.count,
  sessions: () => gateway.sessions.count,
  encoders: () => gateway.encoders.count,
  mediaNodes: () => nodes.all(),
  forwards: () => gateway.forwards.counts,
});

const health = app.health(hasMedia ? { media: { ping: () => nodes.ping(), optional: true } } : {});
// Calls get a media server from the first join on. Without PostgreSQL, the gateway starts all the same.
await readRegistry();
app.repeat('media registry', REGISTRY_EVERY_MS, () => nodes.refresh(), isDatabaseUnavailable);
const whip = new WhipServer({
  logger,
  metrics: measured,
  requests: gateway.whip,
  callerAddress,
  allowedOrigins: config.ALLOWED_ORIGINS,
  hasRoom: () => !lifecycle.isDraining && gateway.encoders.count < config.MAX_CONNECTIONS,
});
const listening = await startHealthServer(health, { host: config.HOST, port: config.PORT }, whip.handle);
acceptUpgrades(listening.server, gateway.connections, {
  allowedOrigins: config.ALLOWED_ORIGINS,
  connectionsMax: config.MAX_CONNECTIONS,
  isDraining: () => lifecycle.isDraining,
  callerAddress,
});
// Registered after the gateway so that it closes first: no new connections arrive while the gateway drains. It waits for
// no WebSocket: the gateway closes them.
app.own('server', { close: () => Promise.resolve(void listening.close()) });
await app.started('listening', {
  host: config.HOST,
  port: listening.port,
  mediaNodes: nodes.all().map(({ id }) => id),
});

function secretsFor(nodeCount: number): { apiSecret: string; adminKey: string } {
  const { MEDIA_API_SECRET: apiSecret = '', MEDIA_ADMIN_KEY: adminKey = '' } = config;
  if (nodeCount > 0 && (apiSecret === '' || adminKey === '')) throw new Error('are required if MEDIA_NODES is set');
  return { apiSecret, adminKey };
}

/** The periodic read reports errors. */
function readRegistry(): Promise<void> {
  return nodes.refresh().catch(() => undefined);
}
