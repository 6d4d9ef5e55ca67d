import type { Redis } from 'ioredis';
import { connectRedis, disconnectRedis, type RedisEvents } from '../redis/redis.js';
import { withRedis } from './notices.js';

/**
 * What goes over a room's channel: `changed` is a hint to read the room again, `message` is what one instance passes
 * on to the clients of another. Both may be lost: a change is found by the next regular look, a message is gone.
 */
type RoomNotice =
  { type: 'changed'; roomId: string; sequence?: number } | { type: 'message'; from: string; message: unknown };

export interface RoomHandlers {
  /** Somebody has changed the room. `sequence` is that of its latest event, where whoever tells of it knew. */
  changed(sequence: number | null): void;
  /** From another instance; one's own messages do not come back. */
  message(message: unknown, from: string): void;
}

export interface RoomBusSettings {
  redisUrl: string;
  /** Who sends: told to receivers. */
  instanceId: string;
  /** A `command` connection: publishing fails at once while Redis is away. */
  publisher: Redis;
  /** `onReady` comes after each reconnection: what was said meanwhile is lost, so read again. */
  events: RedisEvents;
}

/** One channel a room, so that an instance hears of its own rooms only. */
function channelOf(roomId: string): string {
  return `callplane:room:${roomId}`;
}

/**
 * Tells the instances that hold connections of a room that it has changed. Never throws, and takes no longer than a
 * command may; false when Redis cannot be reached.
 * @param redis a `command` connection.
 */
export function publishRoomChanged(redis: Redis, roomId: string, sequence?: number): Promise<boolean> {
  return publish(redis, roomId, { type: 'changed', roomId, ...(sequence === undefined ? {} : { sequence }) });
}

/** The same of several rooms, over a connection of its own: for a command that ends afterwards. */
export function publishRoomsChangedOnce(redisUrl: string, roomIds: readonly string[]): Promise<boolean> {
  return withRedis(redisUrl, async (redis) => {
    const told = await Promise.all(roomIds.map((roomId) => publishRoomChanged(redis, roomId)));
    return told.every(Boolean);
  });
}

/** Hears and tells what happens in rooms, on a connection of its own. */
export class RoomBus {
  readonly #settings: RoomBusSettings;
  readonly #redis: Redis;
  readonly #handlers = new Map<string, RoomHandlers>();

  constructor(settings: RoomBusSettings) {
    this.#settings = settings;
    this.#redis = connectRedis(settings.redisUrl, 'blocking', settings.events);
    this.#redis.on('message', (channel: string, payload: string) => this.#receive(channel, payload));
  }

  /** Whether something published now would arrive. */
  get isListening(): boolean {
    return this.#redis.status === 'ready';
  }

  /** One subscription a room; another takes its place. It is renewed after every reconnection. */
  subscribe(roomId: string, handlers: RoomHandlers): void {
    this.#handlers.set(channelOf(roomId), handlers);
    // While Redis is away the command waits in ioredis' offline queue; it can only fail when the bus is closed.
    this.#redis.subscribe(channelOf(roomId)).catch(() => undefined);
  }

  unsubscribe(roomId: string): void {
    if (!this.#handlers.delete(channelOf(roomId))) return;
    this.#redis.unsubscribe(channelOf(roomId)).catch(() => undefined);
  }

  /** Best effort; see {@link publishRoomChanged}. One's own handler hears it too. */
  publishChanged(roomId: string, sequence?: number): Promise<boolean> {
    return publishRoomChanged(this.#settings.publisher, roomId, sequence);
  }

  /** To the other instances that hold connections of the room. Best effort, like all of this. */
  publishMessage(roomId: string, message: unknown): Promise<boolean> {
    return publish(this.#settings.publisher, roomId, { type: 'message', from: this.#settings.instanceId, message });
  }

  close(): Promise<void> {
    this.#handlers.clear();
    return disconnectRedis(this.#redis);
  }

  #receive(channel: string, payload: string): void {
    const handlers = this.#handlers.get(channel);
    const notice = parse(payload);
    if (handlers === undefined || notice === null) return;
    if (notice.type === 'changed') handlers.changed(notice.sequence ?? null);
    else if (notice.from !== this.#settings.instanceId) handlers.message(notice.message, notice.from);
  }
}

async function publish(redis: Redis, roomId: string, notice: RoomNotice): Promise<boolean> {
  try {
    await redis.publish(channelOf(roomId), JSON.stringify(notice));
    return true;
  } catch {
    return false;
  }
}

/** Another version of this software may say what this one does not know. */
function parse(payload: string): RoomNotice | null {
  try {
    const notice = JSON.parse(payload) as Partial<RoomNotice> | null;
    if (notice?.type === 'changed') return notice as RoomNotice;
    if (notice?.type === 'message' && typeof notice.from === 'string') return notice as RoomNotice;
    return null;
  } catch {
    return null;
  }
}
