import type { Redis } from 'ioredis';
import type { RedisLocation } from '../redis/redis-target.js';
import { connectSubscriber, disconnectRedis, type RedisClient, type RedisEvents } from '../redis/redis.js';
import { overRedis } from '../redis/redis-facts.js';
import { publish } from './notices.js';

/** What a notice says about a change of a room. Its receiver may have to read the room. */
export interface RoomNotice {
  /** The versions that the notice covers: from `after` (null: unknown) to `version` (null: the newest one). */
  range: { after: number | null; version: number | null };
  /** What has changed in the range, so that a receiver that knows `after` need not read it. */
  changes?: unknown;
}

/**
 * Payload of a room's channel. `changed` says that the room has changed. `message` carries a message to the clients of
 * other instances, or the connection quality of participants. `speakers` says who talks at the publishers of an
 * instance, `layers` what its members want of the video of others. All may be lost: the next poll finds a change,
 * speakers and layers are repeated, but a lost message is gone.
 */
type Payload =
  | ({ type: 'changed'; roomId: string; from?: string } & RoomNotice)
  | { type: 'message'; from: string; message: unknown }
  | { type: 'speakers'; from: string; talking: unknown }
  | { type: 'layers'; from: string; layers: unknown };

export interface RoomHandlers {
  /** The room has changed. An instance does not receive its own notices. */
  changed(notice: RoomNotice): void;
  /** A message from another instance. An instance does not receive its own messages. */
  message(message: unknown, from: string): void;
  /** Who talks at the publishers of another instance. */
  speakers?(talking: unknown, from: string): void;
  /** What the members of another instance want of the video of others. */
  layers?(layers: unknown, from: string): void;
}

/** Maximum length of a notice, in characters. A longer one is sent without its changes. */
const NOTICE_CHARS_MAX = 64 * 1024;

export interface RoomBusSettings {
  redisUrl: RedisLocation;
  /** Id of this instance, which receivers get as `from`. */
  instanceId: string;
  /** A `command` connection, so that publishing fails at once while Redis is unavailable. */
  publisher: RedisClient;
  /** `onReady` is called after each reconnection. Notices in between are lost, so rooms have to be read again. */
  events: RedisEvents;
}

/** Every room has its own channel, so that an instance receives only notices of its own rooms. */
function channelOf(roomId: string): string {
  return `callplane:room:${roomId}`;
}

/**
 * Notifies the instances that hold connections of a room that the room has changed. Never throws, and takes at most the
 * deadline of a command.
 * @param redis a `command` connection.
 * @param version the room's version after the change: instances that know it ignore the notice. Null if the publisher
 * does not know it: every instance reads the room.
 * @returns false if Redis cannot be reached.
 */
export function publishRoomChanged(redis: RedisClient, roomId: string, version: number | null): Promise<boolean> {
  return publish(
    redis,
    channelOf(roomId),
    JSON.stringify({ type: 'changed', roomId, range: { after: null, version } }),
  );
}

/**
 * Sends a message to the instances that hold connections of the room. Never throws, and takes at most the deadline of a
 * command.
 * @param redis a `command` connection.
 * @param from identifies the sender to the receivers; no instance has this id.
 * @returns false if Redis cannot be reached.
 */
export function publishRoomMessage(
  redis: RedisClient,
  roomId: string,
  from: string,
  message: unknown,
): Promise<boolean> {
  return publish(redis, channelOf(roomId), JSON.stringify({ type: 'message', from, message } satisfies Payload));
}

/** Like `publishRoomChanged` for several rooms, over its own connection, for commands that exit afterwards. */
export function publishRoomsChangedOnce(
  where: RedisLocation,
  rooms: readonly { roomId: string; version: number }[],
): Promise<boolean> {
  return overRedis(where, async (redis) => {
    const published = await Promise.all(rooms.map(({ roomId, version }) => publishRoomChanged(redis, roomId, version)));
    return published.every(Boolean);
  }).catch(() => false);
}

/** Publishes and receives the notices of rooms. It subscribes on its own connection. */
export class RoomBus {
  readonly #settings: RoomBusSettings;
  readonly #redis: Redis;
  readonly #handlers = new Map<string, RoomHandlers>();

  constructor(settings: RoomBusSettings) {
    this.#settings = settings;
    this.#redis = connectSubscriber(settings.redisUrl, settings.events);
    this.#redis.on('message', (channel: string, payload: string) => this.#receive(channel, payload));
  }

  /** Whether this instance would receive a notice that is published now. */
  get isListening(): boolean {
    return this.#redis.status === 'ready';
  }

  /** Subscribes to a room and replaces its earlier handlers. The subscription survives reconnections. */
  subscribe(roomId: string, handlers: RoomHandlers): void {
    this.#handlers.set(channelOf(roomId), handlers);
    // While Redis is unavailable, ioredis queues the command. It fails only if the bus is closed.
    this.#redis.subscribe(channelOf(roomId)).catch(() => undefined);
  }

  unsubscribe(roomId: string): void {
    if (!this.#handlers.delete(channelOf(roomId))) return;
    this.#redis.unsubscribe(channelOf(roomId)).catch(() => undefined);
  }

  /** Notifies the other instances that hold connections of the room. Best effort, see {@link publishRoomChanged}. */
  publishChanged(roomId: string, notice: RoomNotice): Promise<boolean> {
    const { instanceId, publisher } = this.#settings;
    const { changes, ...rest } = notice;
    const payload = { type: 'changed', roomId, from: instanceId, ...rest } satisfies Payload;
    let text = JSON.stringify({ ...payload, changes });
    if (text.length > NOTICE_CHARS_MAX) text = JSON.stringify(payload);
    return publish(publisher, channelOf(roomId), text);
  }

  /** Sends a message to the other instances that hold connections of the room. Best effort. */
  publishMessage(roomId: string, message: unknown): Promise<boolean> {
    return this.#publish(roomId, { type: 'message', from: this.#settings.instanceId, message });
  }

  /** Tells the other instances who talks at the publishers of this one. Best effort. */
  publishSpeakers(roomId: string, talking: unknown): Promise<boolean> {
    return this.#publish(roomId, { type: 'speakers', from: this.#settings.instanceId, talking });
  }

  /** Tells the other instances what the members of this one want of the video of others. Best effort. */
  publishLayers(roomId: string, layers: unknown): Promise<boolean> {
    return this.#publish(roomId, { type: 'layers', from: this.#settings.instanceId, layers });
  }

  #publish(roomId: string, payload: Payload): Promise<boolean> {
    return publish(this.#settings.publisher, channelOf(roomId), JSON.stringify(payload));
  }

  close(): Promise<void> {
    this.#handlers.clear();
    return disconnectRedis(this.#redis);
  }

  #receive(channel: string, payload: string): void {
    const handlers = this.#handlers.get(channel);
    const notice = parse(payload);
    if (handlers === undefined || notice === null || notice.from === this.#settings.instanceId) return;
    if (notice.type === 'message') handlers.message(notice.message, notice.from);
    else if (notice.type === 'speakers') handlers.speakers?.(notice.talking, notice.from);
    else if (notice.type === 'layers') handlers.layers?.(notice.layers, notice.from);
    else {
      const { range, changes } = notice;
      handlers.changed({ range, ...(changes === undefined ? {} : { changes }) });
    }
  }
}

/** Returns null for an unknown notice, because another version of this software may have sent it. */
function parse(payload: string): Payload | null {
  try {
    const notice = JSON.parse(payload) as Partial<Payload> | null;
    if (notice?.type === 'changed') return notice.range === undefined ? null : (notice as Payload);
    const hasSender = ['message', 'speakers', 'layers'].includes(notice?.type ?? '');
    if (hasSender && typeof notice?.from === 'string') return notice as Payload;
    return null;
  } catch {
    return null;
  }
}
