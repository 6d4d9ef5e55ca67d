import type { Redis } from 'ioredis';
import { overRedis } from '../redis/redis-facts.js';
import { isAnswering } from '../redis/redis-health.js';
import type { RedisLocation } from '../redis/redis-target.js';
import { connectSubscriber, disconnectRedis, type RedisClient, type RedisEvents } from '../redis/redis.js';

/**
 * Hints between processes over Redis publish/subscribe. A notice may be lost, so a process that waits for one needs a
 * deadline. A process that receives one reads the row again.
 */
const NOTICES = {
  /** An operation has been settled. Payload: its id. */
  operationSettled: 'callplane:operation-settled',
  /** An API key has been revoked. Payload: its hexadecimal SHA-256. */
  apiKeyRevoked: 'callplane:api-key-revoked',
  /** A console session has ended. Payload: its hexadecimal SHA-256. */
  consoleSessionEnded: 'callplane:console-session-ended',
  /** The signing keys have changed. Payload: empty. */
  signingKeysChanged: 'callplane:signing-keys-changed',
  /** A media server was registered or removed. Payload: empty. */
  mediaNodesChanged: 'callplane:media-nodes-changed',
} as const;

export type Notice = keyof typeof NOTICES;

/** Publishes a notice to all listening processes. Resolves to false if Redis cannot be reached. */
export function publishNotice(redis: RedisClient, notice: Notice, payload: string): Promise<boolean> {
  return publish(redis, NOTICES[notice], payload);
}

export async function publish(redis: RedisClient, channel: string, payload: string): Promise<boolean> {
  if (!isAnswering(redis)) return false;
  try {
    await redis.publish(channel, payload);
    return true;
  } catch {
    return false;
  }
}

/** Publishes over a connection of its own, for commands that exit afterwards. Resolves to whether all got through. */
export function publishOnce(where: RedisLocation, send: (redis: RedisClient) => Promise<boolean>[]): Promise<boolean> {
  return overRedis(where, async (redis) => (await Promise.all(send(redis))).every(Boolean)).catch(() => false);
}

/** Receives what is published on channels, over a connection of its own. Subscriptions survive reconnections. */
export class Subscriber {
  readonly #redis: Redis;
  readonly #handlers = new Map<string, (payload: string) => void>();

  constructor(where: RedisLocation, events: RedisEvents) {
    this.#redis = connectSubscriber(where, events);
    this.#redis.on('message', (channel: string, payload: string) => this.#handlers.get(channel)?.(payload));
  }

  /** Whether it would receive what is published now. */
  get isListening(): boolean {
    return this.#redis.status === 'ready';
  }

  /** Sets the handler of a channel and replaces an earlier one. */
  subscribe(channel: string, handler: (payload: string) => void): void {
    this.#handlers.set(channel, handler);
    // While Redis is unavailable, ioredis queues the command. It fails only if the connection is closed.
    this.#redis.subscribe(channel).catch(() => undefined);
  }

  unsubscribe(channel: string): void {
    if (this.#handlers.delete(channel)) this.#redis.unsubscribe(channel).catch(() => undefined);
  }

  close(): Promise<void> {
    this.#handlers.clear();
    return disconnectRedis(this.#redis);
  }
}

export class NoticeListener extends Subscriber {
  on(notice: Notice, handler: (payload: string) => void): void {
    this.subscribe(NOTICES[notice], handler);
  }
}
