import type { Redis } from 'ioredis';
import { overRedis } from '../redis/redis-facts.js';
import { isAnswering, troubleOf, type RedisTrouble } from '../redis/redis-health.js';
import { InvalidPayloadError } from '../redis/payloads.js';
import type { RedisLocation } from '../redis/redis-target.js';
import { connectSubscriber, disconnectRedis, type RedisClient, type RedisEvents } from '../redis/redis.js';

/**
 * Hints between processes over Redis publish/subscribe. A notice may be lost, so a process that waits for one needs a
 * deadline. A process that receives one reads the row again.
 */
const NOTICES = {
  /** An operation has been settled. Payload: its id. */
  operationSettled: { channel: 'callplane:operation-settled', payload: /^[A-Za-z0-9_-]{1,128}$/ },
  /** An API key has been revoked. Payload: its hexadecimal SHA-256. */
  apiKeyRevoked: { channel: 'callplane:api-key-revoked', payload: /^[0-9a-f]{64}$/ },
  /** A console session has ended. Payload: its hexadecimal SHA-256. */
  consoleSessionEnded: { channel: 'callplane:console-session-ended', payload: /^[0-9a-f]{64}$/ },
  /** The signing keys have changed. Payload: empty. */
  signingKeysChanged: { channel: 'callplane:signing-keys-changed', payload: /^$/ },
  /** A media server was registered or removed. Payload: empty. */
  mediaNodesChanged: { channel: 'callplane:media-nodes-changed', payload: /^$/ },
} as const;

export type Notice = keyof typeof NOTICES;

/** The channel that every API and every gateway subscribes to. */
export const SHARED_CHANNEL = NOTICES.signingKeysChanged.channel;

/** Publishes a notice to all listening processes. Resolves to false if Redis cannot be reached. */
export function publishNotice(redis: RedisClient, notice: Notice, payload: string): Promise<boolean> {
  return publish(redis, NOTICES[notice].channel, payload);
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

/** How often a refused subscription is tried again, in milliseconds. */
const RETRY_MS = 1000;
/** Channels of one command, so that none blocks Redis for long. */
const CHANNELS_PER_COMMAND = 1000;

/**
 * Receives the messages of channels, over a connection of its own. Subscriptions survive reconnections. ioredis
 * itself does not renew them: a refusal (`NOPERM`) would be an unhandled rejection, which ends the process.
 */
export class Subscriber {
  readonly #redis: Redis;
  readonly #handlers = new Map<string, (payload: string) => void>();
  /** Channels to which Redis does not let it subscribe. */
  readonly #refused = new Set<string>();
  #refusal: RedisTrouble = 'refused';
  readonly #retries: NodeJS.Timeout;

  constructor(
    where: RedisLocation,
    private readonly events: RedisEvents,
  ) {
    this.#redis = connectSubscriber(where, events);
    this.#redis.on('message', (channel: string, payload: string) => this.#receive(channel, payload));
    this.#redis.on('close', () => this.#refused.clear());
    this.#redis.on('ready', () => this.#send([...this.#handlers.keys()]));
    this.#retries = setInterval(() => this.#send([...this.#refused]), RETRY_MS).unref();
  }

  /** Why Redis does not let it subscribe; null if it does, and while there is no connection. */
  get refusal(): RedisTrouble | null {
    return this.#refused.size > 0 ? this.#refusal : null;
  }

  /** Whether it would receive a message that is published now. */
  get isListening(): boolean {
    return this.#redis.status === 'ready' && this.#refused.size === 0;
  }

  /** Sets the handler of a channel and replaces an earlier one. */
  subscribe(channel: string, handler: (payload: string) => void): void {
    this.#handlers.set(channel, handler);
    this.#send([channel]);
  }

  unsubscribe(channel: string): void {
    if (!this.#handlers.delete(channel)) return;
    this.#refused.delete(channel);
    if (this.#redis.status === 'ready') this.#redis.unsubscribe(channel).catch(() => undefined);
  }

  close(): Promise<void> {
    clearInterval(this.#retries);
    this.#handlers.clear();
    return disconnectRedis(this.#redis);
  }

  /** Without a connection it sends nothing: the next one subscribes to every channel. */
  #send(channels: readonly string[]): void {
    for (let from = 0; from < channels.length && this.#redis.status === 'ready'; from += CHANNELS_PER_COMMAND) {
      const some = channels.slice(from, from + CHANNELS_PER_COMMAND);
      this.#redis.subscribe(...some).then(
        () => this.#onGranted(some),
        (error: unknown) => this.#onRefused(some, error as Error),
      );
    }
  }

  #onGranted(channels: readonly string[]): void {
    if (this.#refused.size === 0) return;
    for (const channel of channels) this.#refused.delete(channel);
    // Notices in between are lost, as after a reconnection.
    if (this.#refused.size === 0) this.events.onReady();
  }

  #onRefused(channels: readonly string[], error: Error): void {
    // A command that the end of its connection has cut off: the next connection subscribes.
    if (this.#redis.status !== 'ready') return;
    const isNews = this.#refused.size === 0;
    for (const channel of channels) if (this.#handlers.has(channel)) this.#refused.add(channel);
    this.#refusal = troubleOf(error);
    if (isNews) this.events.onRefused?.(error);
  }

  /** An error of a handler would end the process. */
  #receive(channel: string, payload: string): void {
    try {
      this.#handlers.get(channel)?.(payload);
    } catch (error) {
      this.events.onInvalid?.(error as Error);
    }
  }
}

export class NoticeListener extends Subscriber {
  on(notice: Notice, handler: (payload: string) => void): void {
    const { channel, payload } = NOTICES[notice];
    this.subscribe(channel, (text) => {
      if (!payload.test(text)) throw new InvalidPayloadError(`the notice ${notice}`, 'another payload');
      handler(text);
    });
  }
}
