import type { ServerResponse } from 'node:http';
import {
  type EventType,
  STREAM_HEARTBEAT_MS,
  STREAM_UNREAD_BYTES_MAX,
  type StreamKind,
  streamKindsOf,
} from '@callplane/core';
import type { EventChange, EventPosition } from '@callplane/db';

export interface Change {
  kind: StreamKind;
  type: EventType;
  eventId: string;
  roomId: string | null;
  participantId: string | null;
  sequence: number | null;
}

export interface StreamFilter {
  kinds: ReadonlySet<StreamKind>;
  /** Only changes of this room; null: of all. */
  roomId: string | null;
}

export function changesOf(events: readonly EventChange[], { kinds, roomId }: StreamFilter): Change[] {
  return events.flatMap(({ id, type, roomId: of, participantId, sequence }) =>
    roomId !== null && of !== roomId
      ? []
      : streamKindsOf(type)
          .filter((kind) => kinds.has(kind))
          .map((kind) => ({ kind, type, eventId: id, roomId: of, participantId, sequence })),
  );
}

const POSITION = /^(\d{1,19})\.(evt_[0-9a-z]{26})$/;

/** The `id` of a message: a position among the events of the environment. */
function formatPosition({ transactionId, id }: EventPosition): string {
  return `${transactionId}.${id}`;
}

/** Null if the text is no position. */
export function parsePosition(text: string): EventPosition | null {
  const [, transactionId, id] = POSITION.exec(text) ?? [];
  if (transactionId === undefined || id === undefined || BigInt(transactionId) >= 2n ** 63n) return null;
  return { transactionId, id, roomId: null, sequence: null };
}

export type StreamEnd = 'draining' | 'max_age' | 'unauthenticated';

/** After how long the client connects again, in milliseconds. */
const RETRY_MS = 2000;
/** Messages that wait until the client has got the missed changes. */
const QUEUE_MAX = 1000;

export function streamHead(headers: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...headers,
    'content-type': 'text/event-stream; charset=utf-8',
    // nginx would collect messages.
    'x-accel-buffering': 'no',
  };
}

/** One stream of server-sent events to a client, in the format of the HTML standard. */
export class EventStream {
  readonly filter: StreamFilter;
  readonly openedAtMs: number;
  /** Messages that came before the client got the missed changes; null from then on. */
  #queue: (() => void)[] | null = [];
  #sentAtMs: number;
  #position: EventPosition | null = null;

  /** @param headers of every answer. */
  constructor(
    private readonly response: ServerResponse,
    headers: Readonly<Record<string, string>>,
    filter: StreamFilter,
    private readonly monotonicMs: () => number = () => performance.now(),
  ) {
    this.filter = filter;
    this.openedAtMs = this.#sentAtMs = monotonicMs();
    response.writeHead(200, streamHead(headers));
    this.#write(`retry: ${RETRY_MS}\n\n`);
  }

  get isOver(): boolean {
    return this.response.writableEnded || this.response.destroyed;
  }

  /**
   * The first message.
   * @param position null: the client keeps its own until it has got the missed changes.
   */
  ready(kinds: readonly string[], position: EventPosition | null): void {
    if (position !== null) this.#position = position;
    this.#send('ready', { kinds, resumed: position === null });
  }

  /** Sends the missed changes, or a reset, and from then on new changes. */
  begin(first: (stream: EventStream) => void): void {
    const queue = this.#queue ?? [];
    this.#queue = null;
    first(this);
    for (const send of queue) send();
  }

  /** @param position up to which the client then knows all events. */
  changes(changes: readonly Change[], position: EventPosition): void {
    this.#sendInOrder(() => {
      this.#position = position;
      if (changes.length > 0) this.#send('changes', { changes });
    });
  }

  /** The changes that the client missed up to the position are unknown. */
  reset(position: EventPosition): void {
    this.#sendInOrder(() => {
      this.#position = position;
      this.#send('reset', { reason: 'gap' });
    });
  }

  /** Keeps the connection open, and tells the position behind events that the client does not want. */
  heartbeat(): void {
    if (this.#queue !== null || this.monotonicMs() - this.#sentAtMs < STREAM_HEARTBEAT_MS) return;
    this.#write(`${this.#id()}: heartbeat\n\n`);
  }

  end(reason: StreamEnd): void {
    if (this.isOver) return;
    this.#send('end', { reason });
    this.response.end();
  }

  #sendInOrder(send: () => void): void {
    if (this.#queue === null) send();
    else if (this.#queue.length < QUEUE_MAX) this.#queue.push(send);
    else this.response.destroy();
  }

  #send(event: string, data: object): void {
    // JSON has no line break, which would end a line of the message.
    this.#write(`${this.#id()}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  #id(): string {
    return this.#position === null ? '' : `id: ${formatPosition(this.#position)}\n`;
  }

  #write(text: string): void {
    if (this.isOver) return;
    this.#sentAtMs = this.monotonicMs();
    this.response.write(text);
    // A client that does not read would fill our memory. It connects again and gets the missed changes.
    if (this.response.writableLength > STREAM_UNREAD_BYTES_MAX) this.response.destroy();
  }
}
