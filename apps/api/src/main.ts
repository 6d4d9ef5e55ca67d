import { setFlagsFromString } from 'node:v8';
import { createAddressFilter, createPortFilter, parseAllowedNetworks, parseMasterKeys } from '@callplane/core';
import { activateDueSigningKey, Database, ensureSigningKey, findApiKeysByHash, loadSigningKeys } from '@callplane/db';
import {
  JobProducer,
  NoticeListener,
  publishNotice,
  QUEUE_NAMES,
  REDIS_TROUBLES,
  readRedisTarget,
} from '@callplane/queue';
import { AppProcess, orExit, readTurnSettings, systemClock } from '@callplane/runtime';
import { openStore } from '@callplane/store';
import { createApp, listen } from './app.js';
import { ApiConfig } from './config.js';
import { consoleLinks, ConsoleSessions } from './console/console-sessions.js';
import { findConsole } from './console/console-pages.js';
import type { Deps } from './deps.js';
import { EventWaiter, readNewest } from './events/event-waiter.js';
import { CallerCache } from './http/authenticate.js';
import { requestMetrics } from './http/request-context.js';
import { Asks } from './participants/asks.js';
import { SettlementWaiter } from './operations/settlement-waiter.js';
import { SigningKeyRing } from './signing-keys/signing-key-ring.js';
import { ReadLimiter } from './statements/read-limiter.js';
import { sharedStatements } from './statements/shared-statements.js';
import { reportReadFailures } from './stream/event-feed.js';
import { StreamHub, streamReads } from './stream/stream-hub.js';

// README.md beside this file: the order of the steps, where each 4xx comes from, and the files of a request.

// V8 collects old objects once they have doubled. By default it waits for longer: an API of 50 MiB held 130 MiB of garbage.
setFlagsFromString('--heap-growing-percent=100');
/** How long a request waits for a PostgreSQL that restarts or fails over, in milliseconds. */
const DATABASE_WAIT_MS = 2000;
const app = AppProcess.start('api', ApiConfig);
const { config, logger } = app;
const masterKeys = orExit('ENCRYPTION_KEYS', () => parseMasterKeys(config.ENCRYPTION_KEYS));
const isAllowed = orExit('WEBHOOK_ALLOWED_CIDRS', () => createAddressFilter(config.WEBHOOK_ALLOWED_CIDRS));
const networks = parseAllowedNetworks(config.WEBHOOK_ALLOWED_CIDRS);
if (networks.length > 0) logger.info('webhook networks allowed', { networks: networks.map(({ name }) => name) });
const isAllowedPort = orExit('WEBHOOK_ALLOWED_PORTS', () => createPortFilter(config.WEBHOOK_ALLOWED_PORTS));

// Reads decide readiness: while PostgreSQL waits for a standby with every commit, the API still answers them.
const databaseSettings = { ...app.databaseSettings, waitMs: DATABASE_WAIT_MS };
const reads = new Database({ ...databaseSettings, poolMax: config.DATABASE_READ_POOL_MAX });
const database = new Database(databaseSettings);
app.ownDatabase(reads, [database]);

const redis = orExit('REDIS_URL', () => readRedisTarget(config));
const producer = app.ownProducer(new JobProducer(redis, app.producerEvents(QUEUE_NAMES)), REDIS_TROUBLES);

const notices = app.ownSubscriber('notices', new NoticeListener(redis, app.redisEvents('notices')));

const callers = new CallerCache((hashes) => findApiKeysByHash(reads.sql, hashes), systemClock);
const consoleCallers = config.CONSOLE_ENABLED
  ? {
      sessions: new ConsoleSessions(database, reads, logger, systemClock),
      links: consoleLinks(database, systemClock),
    }
  : null;
notices.on('apiKeyRevoked', (keyHash) => {
  callers.forget(keyHash);
  consoleCallers?.sessions.forgetKey(keyHash);
});
notices.on('consoleSessionEnded', (hash) => consoleCallers?.sessions.forget(hash));
const onSessionEnded = (hash: string): void => {
  consoleCallers?.sessions.forget(hash);
  void publishNotice(producer.redis, 'consoleSessionEnded', hash);
};

const signingKeys = new SigningKeyRing(async () => {
  const now = systemClock.now();
  await ensureSigningKey(database, masterKeys, now);
  await activateDueSigningKey(database, now);
  return loadSigningKeys(database, masterKeys, now);
});
notices.on('signingKeysChanged', () => signingKeys.expire());
// Creates the first signing key at the first start. If PostgreSQL is unavailable, the app starts anyway and the first
// token request creates the key.
await signingKeys.jwks().catch((error: unknown) => logger.warn('signing keys not loaded', { error }));

const eventWaiter = new EventWaiter(readNewest(reads));
const deps: Deps = {
  database,
  reads,
  statements: sharedStatements({
    writes: database.sql,
    reads: reads.sql,
    wake: (deliveries) => producer.wakeDeliveries(deliveries),
  }),
  readLimiter: new ReadLimiter(config.DATABASE_READ_POOL_MAX),
  producer,
  settlements: new SettlementWaiter(notices),
  eventWaiter,
  asks: new Asks(notices),
  streams: new StreamHub(streamReads(reads, reportReadFailures(logger, app.metrics)), eventWaiter, systemClock),
  signingKeys,
  masterKeys,
  turn: readTurnSettings(config, logger),
  tokens: { issuer: config.TOKEN_ISSUER, audience: config.TOKEN_AUDIENCE },
  webhooks: { allowHttp: config.WEBHOOK_ALLOW_HTTP, isAllowed, isAllowedPort },
  console: consoleCallers === null ? null : { signalingUrl: config.CONSOLE_SIGNALING_URL ?? null, onSessionEnded },
  recordings: await openStore(config),
  operationWaitMs: config.ROOM_END_WAIT_MS,
  logger,
  clock: systemClock,
};

const http = createApp(deps, {
  callers: { keys: callers, console: consoleCallers },
  consoleFolder: findConsole(),
  health: app.health(),
  requests: requestMetrics(app.metrics),
  limits: {
    reads: { perSecond: config.RATE_LIMIT_READS_PER_SECOND, burst: config.RATE_LIMIT_READS_BURST },
    writes: { perSecond: config.RATE_LIMIT_WRITES_PER_SECOND, burst: config.RATE_LIMIT_WRITES_BURST },
  },
  unknownKeys: {
    perMinute: config.RATE_LIMIT_UNKNOWN_KEYS_PER_MINUTE,
    burst: config.RATE_LIMIT_UNKNOWN_KEYS_BURST,
  },
  trustProxy: trustProxy(config.TRUST_PROXY),
});
const server = app.own(
  'server',
  await listen(http, logger, { host: config.HOST, port: config.PORT }, config.DRAIN_IDLE_MS),
);
// Registered after the server, so that they close first: requests that wait for an operation or for events then answer
// with the present state.
app.own('settlements', deps.settlements);
app.own('event waits', deps.eventWaiter);
app.own('requests to participants', deps.asks);
app.own('streams', deps.streams);
app.metrics.gauge(
  { name: 'callplane_event_waits', help: 'Requests that wait for events at this instance.' },
  () => deps.eventWaiter.count,
);
app.metrics.gauge(
  { name: 'callplane_streams', help: 'Streams of changes that are open at this instance.' },
  () => deps.streams.count,
);
app.metrics.gauge(
  { name: 'callplane_shared_statement_waits', help: 'Requests that wait for a statement that they share with others.' },
  () => deps.statements.waiting,
);
await app.started('listening', { host: config.HOST, port: server.port });

function trustProxy(setting: readonly string[]): number | string[] | false {
  if (setting.length === 0) return false;
  const [first = ''] = setting;
  return setting.length === 1 && /^\d+$/.test(first) ? Number(first) : [...setting];
}
