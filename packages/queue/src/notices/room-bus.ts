import type { RedisLocation } from '../redis/redis-target.js';
import type { RedisClient, RedisEvents } from '../redis/redis.js';
import { publish, Subscriber } from './notices.js';

/** What a notice says about a change of a room. Its receiver may have to read the room. */
export interface RoomNotice {
  /** The versions that the notice covers: from `after` (null: unknown) to `version` (null: the newest one). */
  range: { after: number | null; version: number | null };
  /** What has changed in the range, so that a receiver that knows `after` need not read it. */
  changes?: unknown;
}

/** Version of the payloads. Gateways of another release ignore them, and find changes with their next poll. */
const VERSION = 1;

/**
 * Payload of a room's channel. `changed` says that the room has changed. `message` carries a message to the clients of
 * other instances. `report` carries what an instance knows of its members: who talks, what they want to receive, how
 * well their media works. All may be lost: the next poll finds a change, reports are repeated, but a lost message is
 * gone.
 */
type Payload =
  | ({ type: 'changed'; roomId: string; from?: string } & RoomNotice)
  | { type: 'message'; from: string; message: unknown }
  | { type: 'report'; from: string; kind: string; report: unknown };

export interface RoomHandlers {
  /** The room has changed. An instance does not receive its own notices. */
  changed(notice: RoomNotice): void;
  /** A message from another instance. An instance does not receive its own messages. */
  message(message: unknown, from: string): void;
  report?(kind: string, report: unknown, from: string): void;
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
  return publish(redis, channelOf(roomId), textOf({ type: 'changed', roomId, range: { after: null, version } }));
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
  return publish(redis, channelOf(roomId), textOf({ type: 'message', from, message }));
}

/** Publishes and receives the notices of rooms. It subscribes on its own connection. */
export class RoomBus {
  readonly #settings: RoomBusSettings;
  readonly #subscriber: Subscriber;
  /** How the notices of this instance begin, which Redis sends back to it. */
  readonly #own: string;

  constructor(settings: RoomBusSettings) {
    this.#settings = settings;
    this.#own = JSON.stringify({ v: VERSION, from: settings.instanceId }).slice(0, -1);
    this.#subscriber = new Subscriber(settings.redisUrl, settings.events);
  }

  /** Whether this instance would receive a notice that is published now. */
  get isListening(): boolean {
    return this.#subscriber.isListening;
  }

  /** Subscribes to a room and replaces its earlier handlers. The subscription survives reconnections. */
  subscribe(roomId: string, handlers: RoomHandlers): void {
    this.#subscriber.subscribe(channelOf(roomId), (text) => this.#receive(handlers, text));
  }

  unsubscribe(roomId: string): void {
    this.#subscriber.unsubscribe(channelOf(roomId));
  }

  /** Notifies the other instances that hold connections of the room. Best effort, see {@link publishRoomChanged}. */
  publishChanged(roomId: string, notice: RoomNotice): Promise<boolean> {
    const { changes, ...rest } = notice;
    const payload: Payload = { from: this.#settings.instanceId, type: 'changed', roomId, ...rest };
    const text = textOf(changes === undefined ? payload : { ...payload, changes });
    return this.#publish(roomId, text.length > NOTICE_CHARS_MAX ? textOf(payload) : text);
  }

  publishMessage(roomId: string, message: unknown): Promise<boolean> {
    return this.#publish(roomId, textOf({ from: this.#settings.instanceId, type: 'message', message }));
  }

  publishReport(roomId: string, kind: string, report: unknown): Promise<boolean> {
    return this.#publish(roomId, textOf({ from: this.#settings.instanceId, type: 'report', kind, report }));
  }

  close(): Promise<void> {
    return this.#subscriber.close();
  }

  #publish(roomId: string, text: string): Promise<boolean> {
    return publish(this.#settings.publisher, channelOf(roomId), text);
  }

  #receive(handlers: RoomHandlers, text: string): void {
    if (text.startsWith(this.#own)) return;
    const payload = payloadOf(text);
    if (payload === null) return;
    if (payload.type === 'message') handlers.message(payload.message, payload.from);
    else if (payload.type === 'report') handlers.report?.(payload.kind, payload.report, payload.from);
    else {
      const { range, changes } = payload;
      handlers.changed({ range, ...(changes === undefined ? {} : { changes }) });
    }
  }
}

function textOf(payload: Payload): string {
  return JSON.stringify({ v: VERSION, ...payload });
}

/** Returns null for the payload of another release. */
function payloadOf(text: string): Payload | null {
  try {
    const payload = JSON.parse(text) as (Payload & { v: number }) | null;
    return payload?.v === VERSION ? payload : null;
  } catch {
    return null;
  }
}
