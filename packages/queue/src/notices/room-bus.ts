import { MESSAGE_BYTES_MAX, MESSAGE_RECIPIENTS_MAX, PATH_ID_PATTERN } from '@callplane/core';
import { Type, type Static } from 'typebox';
import { parsePayload, payloadReader } from '../redis/payloads.js';
import type { RedisLocation } from '../redis/redis-target.js';
import type { RedisTrouble } from '../redis/redis-health.js';
import type { RedisClient, RedisEvents } from '../redis/redis.js';
import { publish, Subscriber } from './notices.js';

/** Version of the payloads. Gateways of another release ignore them, and find changes with their next poll. */
const VERSION = 1;

/** Characters that a frame adds to the data of a message. */
const FRAME_CHARS_MAX = 512;

const Id = Type.String({ pattern: PATH_ID_PATTERN });
/** Who has sent a payload: an instance, or the server. */
const Sender = Type.String({ minLength: 1, maxLength: 128 });

/**
 * A payload of a room's channel. `changed` says that the room has changed, and to which version (null: unknown); its
 * receiver reads the room. `message` carries a message to the clients of other instances. `report` carries an
 * instance's knowledge of its members: who talks, which tracks they want, how well their media works. All may be lost:
 * the next poll finds a change, reports are repeated, but a lost message is gone. Earlier patch releases also put
 * changes into `changed`, which nothing reads: any writer of Redis could have invented them.
 */
const Payload = Type.Union([
  Type.Object({
    type: Type.Literal('changed'),
    range: Type.Object({ version: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]) }),
  }),
  Type.Object({
    type: Type.Literal('message'),
    from: Sender,
    message: Type.Object({
      from: Id,
      to: Type.Union([Type.Array(Id, { maxItems: MESSAGE_RECIPIENTS_MAX }), Type.Null()]),
      text: Type.String({ maxLength: MESSAGE_BYTES_MAX + FRAME_CHARS_MAX }),
    }),
  }),
  Type.Object({
    type: Type.Literal('report'),
    from: Sender,
    kind: Type.String({ maxLength: 64 }),
    report: Type.Unknown(),
  }),
]);
type Payload = Static<typeof Payload>;

const readVersion = payloadReader('a notice of a room', Type.Object({ v: Type.Integer() }));
const readPayload = payloadReader('a notice of a room', Payload);

/** A message to participants of a room. */
export interface RoomMessage {
  /** A participant id, or `server`. */
  from: string;
  /** Participant ids; null for all other participants. */
  to: string[] | null;
  /** The frame that clients get, as JSON. A receiver must not trust it. */
  text: string;
}

/** A handler that throws drops the payload, which is logged and counted. */
export interface RoomHandlers {
  /** The room has changed, to this version; null: unknown. An instance does not receive its own notices. */
  changed(version: number | null): void;
  /** A message from another instance. An instance does not receive its own messages. */
  message(message: RoomMessage): void;
  report?(kind: string, report: unknown, from: string): void;
}

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
  return publish(redis, channelOf(roomId), textOf({ type: 'changed', range: { version } }));
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
  message: RoomMessage,
): Promise<boolean> {
  return publish(redis, channelOf(roomId), textOf({ type: 'message', from, message }));
}

const INBOX = /^(api_[0-9a-f]{24})-/;

/**
 * The channel of the API process that waits for the reply to an ask, which {@link RoomBus.publishMessage} takes in place
 * of a room; undefined if no API process asks with such an id.
 */
export function inboxOf(askId: string): string | undefined {
  return INBOX.exec(askId)?.[1];
}

/**
 * Receives the replies to the asks of an API process, over a channel among the rooms'.
 * @param inbox `api_` and 24 hexadecimal digits, with which the ids of its asks begin, followed by `-`
 */
export function receiveReplies(
  listener: Pick<Subscriber, 'subscribe'>,
  inbox: string,
  onReply: (message: RoomMessage) => void,
): void {
  listener.subscribe(channelOf(inbox), (text) => {
    const payload = readPayload(parsePayload('a reply', text));
    if (payload.type === 'message') onReply(payload.message);
  });
}

/** Publishes and receives the notices of rooms. It subscribes on its own connection. */
export class RoomBus {
  readonly #subscriber: Subscriber;
  /** How the notices of this instance begin, which Redis sends back to it. */
  readonly #own: string;

  constructor(private readonly settings: RoomBusSettings) {
    this.#own = JSON.stringify({ v: VERSION, from: settings.instanceId }).slice(0, -1);
    this.#subscriber = new Subscriber(settings.redisUrl, settings.events);
  }

  /** Whether this instance would receive a notice that is published now. */
  get isListening(): boolean {
    return this.#subscriber.isListening;
  }

  get refusal(): RedisTrouble | null {
    return this.#subscriber.refusal;
  }

  /** Subscribes to a room and replaces its earlier handlers. The subscription survives reconnections. */
  subscribe(roomId: string, handlers: RoomHandlers): void {
    this.#subscriber.subscribe(channelOf(roomId), (text) => this.#receive(handlers, text));
  }

  unsubscribe(roomId: string): void {
    this.#subscriber.unsubscribe(channelOf(roomId));
  }

  /** Notifies the other instances that hold connections of the room. Best effort, see {@link publishRoomChanged}. */
  publishChanged(roomId: string, version: number | null): Promise<boolean> {
    return this.#publish(roomId, textOf({ from: this.settings.instanceId, type: 'changed', range: { version } }));
  }

  publishMessage(roomId: string, message: RoomMessage): Promise<boolean> {
    return this.#publish(roomId, textOf({ from: this.settings.instanceId, type: 'message', message }));
  }

  publishReport(roomId: string, kind: string, report: unknown): Promise<boolean> {
    return this.#publish(roomId, textOf({ from: this.settings.instanceId, type: 'report', kind, report }));
  }

  close(): Promise<void> {
    return this.#subscriber.close();
  }

  #publish(roomId: string, text: string): Promise<boolean> {
    return publish(this.settings.publisher, channelOf(roomId), text);
  }

  /** @throws InvalidPayloadError */
  #receive(handlers: RoomHandlers, text: string): void {
    if (text.startsWith(this.#own)) return;
    const parsed = parsePayload('a notice of a room', text);
    if (readVersion(parsed).v !== VERSION) return;
    const payload = readPayload(parsed);
    if (payload.type === 'message') handlers.message(payload.message);
    else if (payload.type === 'report') handlers.report?.(payload.kind, payload.report, payload.from);
    else handlers.changed(payload.range.version);
  }
}

function textOf(payload: Payload & { from?: string }): string {
  return JSON.stringify({ v: VERSION, ...payload });
}
