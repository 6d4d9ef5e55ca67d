import { Redis, type RedisOptions } from 'ioredis';

/** The role of a connection decides how it behaves while Redis is unavailable. */
export type RedisRole =
  /** Commands fail at once, because a request must not wait for Redis. */
  | 'command'
  /** Commands wait for Redis: a worker has nothing else to do, and a subscriber renews its subscriptions. */
  | 'blocking';

/** Replies keep the shapes of RESP2, which the type of a connection states. */
type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>;

export interface RedisEvents {
  onLost(error: Error): void;
  onReady(): void;
}

/** How long one command may take on a `command` connection, in milliseconds. */
const COMMAND_DEADLINE_MS = 200;
const RECONNECT_DELAY_MS_MAX = 1000;
/**
 * A connection is replaced if a command gets no answer for this long, in milliseconds. The address may lead to another
 * server by now, while the old one is frozen and keeps its connections open. `blocking` exceeds the 10 s that BullMQ
 * blocks.
 */
const SILENCE_MS: Record<RedisRole, number> = { command: 5000, blocking: 15_000 };

/** The server is not the master, or not yet. After a failover the same address leads to another server. */
const NOT_THE_MASTER = /^(READONLY|LOADING|MASTERDOWN)\b/;
/** Pause between reconnections while the address still leads to a replica, in milliseconds: faster ones do not help. */
const REFUSED_PAUSE_MS = 1000;
/**
 * A refusal this long after the last one, in milliseconds, starts a new failover: the connection reconnects at once.
 */
const REFUSALS_APART_MS = 10_000;

/** Opens a connection that reconnects forever. It reports each loss once instead of every failed attempt. */
export function connectRedis(url: string, role: RedisRole, events: RedisEvents, more: ConnectionOptions = {}): Redis {
  const byRole: ConnectionOptions =
    role === 'command'
      ? { enableOfflineQueue: false, commandTimeout: COMMAND_DEADLINE_MS, maxRetriesPerRequest: 0 }
      : { enableOfflineQueue: true, maxRetriesPerRequest: null };
  let refusedAtMs = -Infinity;
  let pauseMs = 0;
  const redis = new Redis(url, {
    ...byRole,
    // Proxies that speak only RESP2 refuse the greeting of RESP3, which this project has no use for.
    protocol: 2,
    socketTimeout: SILENCE_MS[role],
    ...more,
    reconnectOnError: (error) => {
      if (!NOT_THE_MASTER.test(error.message)) return false;
      const now = performance.now();
      pauseMs = now - refusedAtMs < REFUSALS_APART_MS ? REFUSED_PAUSE_MS : 0;
      refusedAtMs = now;
      // 2 sends the command again after the reconnection. A request does not wait for that, so 1 only reconnects.
      return role === 'blocking' ? 2 : 1;
    },
    connectTimeout: 3000,
    keepAlive: 5000,
    // ioredis destroys a connection that we end after this time, even if Redis has not closed its side.
    disconnectTimeout: 100,
    retryStrategy: (attempt) => Math.max(pauseMs, Math.min(50 * 2 ** Math.min(attempt, 10), RECONNECT_DELAY_MS_MAX)),
  });
  let reported = false;
  const lost = (error: Error): void => {
    if (reported) return;
    reported = true;
    events.onLost(error);
  };
  redis.on('error', lost);
  redis.on('close', () => lost(new Error('the connection was closed')));
  const ready = (): void => {
    reported = false;
    events.onReady();
  };
  let steady: NodeJS.Timeout | undefined;
  redis.on('close', () => clearTimeout(steady));
  redis.on('ready', () => {
    // A replica accepts connections but refuses commands again and again. This loss, too, is reported only once.
    if (pauseMs > 0) steady = setTimeout(ready, REFUSALS_APART_MS).unref();
    else ready();
    pauseMs = 0;
  });
  return redis;
}

/** Interval of the pings with which a subscriber checks that its server still answers, in milliseconds. */
const SUBSCRIBER_PING_MS = 5000;
const SUBSCRIBER_SILENCE_MS = 5000;

/**
 * Opens a connection for subscriptions. It sends no commands, so without pings it would never notice a frozen server or
 * an address that leads elsewhere. It is replaced if a ping gets no answer.
 */
export function connectSubscriber(url: string, events: RedisEvents): Redis {
  const redis = connectRedis(url, 'blocking', events, { socketTimeout: SUBSCRIBER_SILENCE_MS });
  const timer = setInterval(() => {
    if (redis.status === 'ready') redis.ping().catch(() => undefined);
  }, SUBSCRIBER_PING_MS).unref();
  redis.once('end', () => clearInterval(timer));
  return redis;
}

/** Closes a connection without waiting for the server, which may never answer. */
export function disconnectRedis(redis: Redis): Promise<void> {
  redis.removeAllListeners('close');
  redis.removeAllListeners('error');
  redis.on('error', () => undefined);
  redis.disconnect();
  return Promise.resolve();
}
