import type { Redis } from 'ioredis';
import { connectRedis, disconnectRedis, type RedisEvents } from '../redis/redis.js';

/**
 * Hints between processes over Redis publish/subscribe. A notice may be lost: whoever acts on one reads the row
 * again, and whoever waits for one has a deadline.
 */
export const NOTICES = {
  /** Payload: operation id. Its row has been settled. */
  operationSettled: 'callplane:operation-settled',
  /** Payload: hexadecimal SHA-256 of an API key that was revoked. */
  apiKeyRevoked: 'callplane:api-key-revoked',
  /** Payload: empty. The signing keys have changed. */
  signingKeysChanged: 'callplane:signing-keys-changed',
} as const;

export type Notice = keyof typeof NOTICES;

/** Tells every listening process; resolves to false when Redis cannot be reached. */
export async function publishNotice(redis: Redis, notice: Notice, payload: string): Promise<boolean> {
  try {
    await redis.publish(NOTICES[notice], payload);
    return true;
  } catch {
    return false;
  }
}

/** Publishes one notice over a connection of its own: for a command that ends afterwards. */
export function publishNoticeOnce(redisUrl: string, notice: Notice, payload: string): Promise<boolean> {
  return withRedis(redisUrl, (redis) => publishNotice(redis, notice, payload));
}

/** Publishes over a connection of its own; false when Redis cannot be reached. */
export async function withRedis(redisUrl: string, publish: (redis: Redis) => Promise<boolean>): Promise<boolean> {
  const redis = connectRedis(redisUrl, 'command', { onLost: () => undefined, onReady: () => undefined });
  try {
    await new Promise<void>((resolve, reject) => {
      redis.once('ready', resolve);
      redis.once('error', reject);
    });
    return await publish(redis);
  } catch {
    return false;
  } finally {
    await disconnectRedis(redis);
  }
}

/** Listens for notices on a connection of its own. */
export class NoticeListener {
  readonly #redis: Redis;
  readonly #handlers = new Map<string, (payload: string) => void>();

  constructor(redisUrl: string, events: RedisEvents) {
    this.#redis = connectRedis(redisUrl, 'blocking', events);
    this.#redis.on('message', (channel: string, payload: string) => this.#handlers.get(channel)?.(payload));
  }

  /** One handler a notice. The subscription is renewed after every reconnection. */
  on(notice: Notice, handler: (payload: string) => void): void {
    this.#handlers.set(NOTICES[notice], handler);
    // While Redis is away the command waits in ioredis' offline queue; it can only fail when the listener is closed.
    this.#redis.subscribe(NOTICES[notice]).catch(() => undefined);
  }

  /** Whether a notice sent now would arrive. */
  get isListening(): boolean {
    return this.#redis.status === 'ready';
  }

  close(): Promise<void> {
    return disconnectRedis(this.#redis);
  }
}
