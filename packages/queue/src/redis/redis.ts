import { Redis, type RedisOptions } from 'ioredis';

/** What a connection is for decides how it behaves while Redis is away. */
export type RedisRole =
  /** Fails at once: a request must not wait for Redis. */
  | 'command'
  /** Waits for Redis to come back: a worker has nothing else to do, a subscriber subscribes again by itself. */
  | 'blocking';

export interface RedisEvents {
  onLost(error: Error): void;
  onReady(): void;
}

/** How long one command may take on a `command` connection, in milliseconds. */
const COMMAND_DEADLINE_MS = 200;
const RECONNECT_DELAY_MS_MAX = 1000;

/** A connection that reconnects for ever and tells of each loss once, not of each attempt. */
export function connectRedis(url: string, role: RedisRole, events: RedisEvents, more: RedisOptions = {}): Redis {
  const byRole: RedisOptions =
    role === 'command'
      ? { enableOfflineQueue: false, commandTimeout: COMMAND_DEADLINE_MS, maxRetriesPerRequest: 0 }
      : { enableOfflineQueue: true, maxRetriesPerRequest: null };
  const redis = new Redis(url, {
    ...byRole,
    ...more,
    connectTimeout: 3000,
    keepAlive: 5000,
    // After this long a connection that we end is destroyed, whether Redis has ended it too or not.
    disconnectTimeout: 100,
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 10), RECONNECT_DELAY_MS_MAX),
  });
  let told = false;
  const lost = (error: Error): void => {
    if (told) return;
    told = true;
    events.onLost(error);
  };
  redis.on('error', lost);
  redis.on('close', () => lost(new Error('the connection was closed')));
  redis.on('ready', () => {
    told = false;
    events.onReady();
  });
  return redis;
}

/** Closes a connection without waiting for a server that may never answer. */
export function disconnectRedis(redis: Redis): Promise<void> {
  redis.removeAllListeners('close');
  redis.removeAllListeners('error');
  redis.on('error', () => undefined);
  redis.disconnect();
  return Promise.resolve();
}
