import { createAddressJudge, parseMasterKeys } from '@callplane/core';
import { activateDueSigningKey, Database, ensureSigningKey, findApiKeyByHash, loadSigningKeys } from '@callplane/db';
import { JobProducer, NoticeListener } from '@callplane/queue';
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
import { createApp } from './app.js';
import { ApiConfig } from './config.js';
import type { Deps } from './deps.js';
import { CallerCache } from './http/caller-cache.js';
import { requestMetrics } from './http/request-metrics.js';
import { SettlementWaiter } from './operations/settlement-waiter.js';
import { listen } from './server.js';
import { SigningKeyRing } from './signing-keys/signing-key-ring.js';

const config = loadConfig(ApiConfig);
const masterKeys = orExit('ENCRYPTION_KEYS', () => parseMasterKeys(config.ENCRYPTION_KEYS));
const isAllowed = orExit('WEBHOOK_ALLOWED_CIDRS', () => createAddressJudge(config.WEBHOOK_ALLOWED_CIDRS));
const logger = createLogger(config, 'api');
const metrics = createMetrics({ app: 'api' });
const lifecycle = new Lifecycle(logger, config.SHUTDOWN_DEADLINE_MS);
lifecycle.handleSignals();

const database = new Database({
  url: config.DATABASE_URL,
  poolMax: config.DATABASE_POOL_MAX,
  onConnectionError: (error) => logger.warn('database connection lost', { error }),
});
lifecycle.onClose('database', () => database.close());
addDatabaseMetrics(metrics, () => database.connections());

const producer = new JobProducer(config.REDIS_URL, redisEvents(logger, 'producer'));
lifecycle.onClose('producer', () => producer.close());

const notices = new NoticeListener(config.REDIS_URL, redisEvents(logger, 'notices'));
lifecycle.onClose('notices', () => notices.close());

const callers = new CallerCache((keyHash) => findApiKeyByHash(database.prisma, keyHash), systemClock);
notices.on('apiKeyRevoked', (keyHash) => callers.forget(keyHash));

const signingKeys = new SigningKeyRing(async () => {
  const now = systemClock.now();
  await ensureSigningKey(database, masterKeys, now);
  await activateDueSigningKey(database, now);
  return loadSigningKeys(database, masterKeys, now);
});
notices.on('signingKeysChanged', () => signingKeys.expire());
// The first start makes the first key. Without PostgreSQL the app starts all the same, and the first token makes it.
await signingKeys.jwks().catch((error: unknown) => logger.warn('signing keys not loaded', { error }));

const deps: Deps = {
  database,
  producer,
  settlements: new SettlementWaiter(notices),
  signingKeys,
  masterKeys,
  turn: {
    stunUrls: config.STUN_URLS,
    turnUrls: config.TURN_URLS,
    secret: config.TURN_SECRET ?? null,
    ttlSeconds: config.TURN_TTL_SECONDS,
  },
  tokens: { issuer: config.TOKEN_ISSUER, audience: config.TOKEN_AUDIENCE },
  webhooks: { allowHttp: config.WEBHOOK_ALLOW_HTTP, isAllowed },
  operationWaitMs: config.ROOM_END_WAIT_MS,
  logger,
  clock: systemClock,
};
if (deps.turn.secret === null) logger.warn('no TURN relay configured', { setting: 'TURN_SECRET' });

const health = createHealth(
  logger,
  { postgres: { ping: () => database.ping() }, redis: { ping: () => producer.redis.ping(), optional: true } },
  () => lifecycle.isClosing,
);
const app = createApp(deps, {
  callers,
  health,
  requests: requestMetrics(metrics),
  limits: {
    reads: { perSecond: config.RATE_LIMIT_READS_PER_SECOND, burst: config.RATE_LIMIT_READS_BURST },
    writes: { perSecond: config.RATE_LIMIT_WRITES_PER_SECOND, burst: config.RATE_LIMIT_WRITES_BURST },
  },
  trustProxy: trustProxy(config.TRUST_PROXY),
});
const server = await listen(app, logger, { host: config.HOST, port: config.PORT }, config.DRAIN_IDLE_MS);
lifecycle.onClose('server', () => server.close());
// Closed first: requests that wait for an operation answer with what its row says.
lifecycle.onClose('settlements', () => deps.settlements.close());
const metricsPort = await serveMetrics(metrics, config, lifecycle);
logger.info('listening', { host: config.HOST, port: server.port, metricsPort });

function trustProxy(setting: readonly string[]): number | string[] | false {
  if (setting.length === 0) return false;
  const [first = ''] = setting;
  return setting.length === 1 && /^\d+$/.test(first) ? Number(first) : [...setting];
}
