import { Redis } from 'ioredis';
import { connectorOf, type ConnectionOptions } from './connector.js';
import { parseRedisUrl, type RedisLocation, type RedisTarget } from './redis-target.js';
import { masterOf } from './sentinels.js';

export type RedisClient = Redis;

/** The role of a connection decides how it behaves while Redis is unavailable. */
export type RedisRole =
  /** Commands fail at once, because a request must not wait for Redis. */
  | 'command'
  /** Commands wait for Redis: a worker has nothing else to do, and a subscriber renews its subscriptions. */
  | 'blocking';

export interface RedisEvents {
  onLost(error: Error): void;
  onReady(): void;
  /** Redis refuses a subscription. It is tried again until `onReady`. */
  onRefused?(error: Error): void;
  /** A message or a job was dropped: its payload is not valid, or its handler has thrown. */
  onInvalid?(error: Error): void;
}

/** First part of every key: other applications may share the Redis. */
export const KEY_PREFIX = 'callplane';

/** How long one command may take on a `command` connection, in milliseconds. */
const COMMAND_DEADLINE_MS = 200;
/**
 * A connection is replaced if a command gets no answer for this long, in milliseconds. The address may lead to another
 * server by now, while the old one is frozen and keeps its connections open. `blocking` exceeds the 10 s that BullMQ
 * blocks.
 */
const SILENCE_MS: Record<RedisRole, number> = { command: 5000, blocking: 15_000 };
const CONNECT_MS = 3000;

/** The server is not the master, or not yet. After a failover the same address leads to another server. */
const NOT_THE_MASTER = /^(READONLY|LOADING|MASTERDOWN)\b/;
/** Pause before the next connection after a refusal of such a server, in milliseconds. */
const REFUSED_PAUSE_MS = 1000;
/** A connection that lasts this long after a refusal is ready again, in milliseconds. */
const STEADY_MS = 5000;

const RETRY_FIRST_MS = 50;
const RETRY_MAX_MS = 1000;

/**
 * Opens a connection that reconnects forever, and follows the master to another server. It reports each loss once
 * instead of every failed attempt.
 */
export function connectRedis(
  where: RedisLocation,
  role: RedisRole,
  events: RedisEvents,
  more: ConnectionOptions = {},
): Redis {
  const target = typeof where === 'string' ? parseRedisUrl(where) : where;
  let refusedAtMs = -Infinity;
  const wasRefused = (): boolean => performance.now() - refusedAtMs < STEADY_MS;
  const redis = new Redis({
    ...optionsOf(target, role),
    reconnectOnError: (error) => {
      if (!NOT_THE_MASTER.test(error.message)) return false;
      refusedAtMs = performance.now();
      // 2 sends the command again after the reconnection. A request does not wait for that, so 1 only reconnects.
      return role === 'blocking' ? 2 : 1;
    },
    retryStrategy: (attempt) =>
      wasRefused() ? REFUSED_PAUSE_MS : Math.min(RETRY_FIRST_MS * 2 ** Math.min(attempt, 10), RETRY_MAX_MS),
    ...more,
  });
  report(redis, events, wasRefused);
  return redis;
}

function optionsOf(target: RedisTarget, role: RedisRole): ConnectionOptions {
  const byRole: ConnectionOptions =
    role === 'command'
      ? { enableOfflineQueue: false, commandTimeout: COMMAND_DEADLINE_MS, maxRetriesPerRequest: 0 }
      : { enableOfflineQueue: true, maxRetriesPerRequest: null };
  const { tls } = target;
  return {
    ...byRole,
    ...target.credentials,
    db: target.database,
    // ioredis waits for the handshake of TLS if this is set. The connector opens the socket.
    ...(tls === null ? {} : { tls: { ...tls } }),
    Connector:
      target.kind === 'sentinel'
        ? connectorOf(() => masterOf(target), tls, 'master')
        : connectorOf(() => Promise.resolve(target.address), tls),
    // Proxies that speak only RESP2 refuse the greeting of RESP3, which this project has no use for.
    protocol: 2,
    socketTimeout: SILENCE_MS[role],
    connectTimeout: CONNECT_MS,
    keepAlive: 5000,
  };
}

function report(redis: Redis, events: RedisEvents, wasRefused: () => boolean): void {
  let reported = false;
  let steady: NodeJS.Timeout | undefined;
  const lost = (error: Error): void => {
    if (reported || ending.has(redis)) return;
    reported = true;
    events.onLost(error);
  };
  const ready = (): void => {
    reported = false;
    events.onReady();
  };
  redis.on('error', lost);
  redis.on('close', () => {
    clearTimeout(steady);
    lost(new Error('the connection was closed'));
  });
  redis.on('ready', () => {
    // A replica accepts connections but refuses commands again and again. This loss, too, is reported only once.
    if (wasRefused()) steady = setTimeout(ready, STEADY_MS).unref();
    else ready();
  });
}

/** Interval of the pings with which a subscriber checks that its server still answers, in milliseconds. */
const SUBSCRIBER_PING_MS = 5000;
const SUBSCRIBER_SILENCE_MS = 5000;

/**
 * Opens a connection for subscriptions. It sends no commands, so without pings it would never notice a frozen server or
 * an address that leads elsewhere. It is replaced if a ping gets no answer.
 */
export function connectSubscriber(where: RedisLocation, events: RedisEvents): Redis {
  const redis = connectRedis(where, 'blocking', events, {
    socketTimeout: SUBSCRIBER_SILENCE_MS,
    autoResubscribe: false,
  });
  const timer = setInterval(() => {
    if (redis.status === 'ready') redis.ping().catch(() => undefined);
  }, SUBSCRIBER_PING_MS).unref();
  redis.once('end', () => clearInterval(timer));
  return redis;
}

/** Connections that this process ends. They report no loss. */
const ending = new WeakSet<Redis>();

/** Closes a connection without waiting for the server, which may never answer. */
export function disconnectRedis(redis: Redis): Promise<void> {
  ending.add(redis);
  redis.disconnect();
  return Promise.resolve();
}
