import type { ServerResponse } from 'node:http';
import {
  firstIdAt,
  PublicError,
  rateLimited,
  STREAM_AGE_MS_MAX,
  STREAM_POSITION_AGE_MS_MAX,
  STREAMS_MAX,
  STREAMS_PER_ENVIRONMENT_MAX,
  type Clock,
  type Tenant,
} from '@callplane/core';
import { listEventChanges, newestEvents, type Database, type EventPosition } from '@callplane/db';
import { KeyedBound } from '@callplane/runtime';
import { BEFORE_ALL, type EventWaiter } from '../events/event-waiter.js';
import { EventStream, parsePosition, type StreamEnd, streamHead, type StreamFilter } from './event-stream.js';
import { EventFeed, type FeedReads, type OnReadFailed } from './event-feed.js';

/** Interval of the checks of each stream: its caller, its age, and whether it needs a heartbeat. In milliseconds. */
const CHECK_EVERY_MS = 1000;
/** Streams end at different times, within this many milliseconds. */
const AGE_SPREAD_MS = 60_000;

export interface StreamRequest extends StreamFilter {
  tenant: Tenant;
  /** The position that the client has, as it sent it; null: none. */
  after: string | null;
  /** Whether the caller may still read. Rejects if that cannot be found out. */
  isKeyValid: () => Promise<boolean>;
}

interface Open {
  stream: EventStream;
  request: StreamRequest;
  feed: EventFeed;
  endsAtMs: number;
}

export interface StreamReads {
  onFailed: OnReadFailed;
  feed(tenant: Tenant): FeedReads;
}

export function streamReads({ sql }: Pick<Database, 'sql'>, onFailed: OnReadFailed): StreamReads {
  return {
    onFailed,
    feed: (tenant) => ({
      newest: async () => (await newestEvents(sql, [tenant.environmentId])).get(tenant.environmentId) ?? BEFORE_ALL,
      after: (after, until, limit) => listEventChanges(sql, tenant, { after, until, limit }),
    }),
  };
}

export class StreamHub {
  readonly #open = new Set<Open>();
  /** Counts streams that are open or about to open. */
  readonly #entered = new KeyedBound({ max: STREAMS_MAX, perKeyMax: STREAMS_PER_ENVIRONMENT_MAX });
  readonly #feeds = new Map<string, EventFeed>();
  #opened = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(
    private readonly reads: StreamReads,
    private readonly waiter: EventWaiter,
    private readonly clock: Clock,
  ) {}

  /** Streams that are open or about to open. */
  get count(): number {
    return this.#entered.total;
  }

  /**
   * Prepares a stream. The result opens it, once the answer may begin.
   * @throws PublicError RATE_LIMITED for too many streams, UNAVAILABLE while the process drains; the error of a read.
   */
  async prepare(request: StreamRequest): Promise<(response: ServerResponse, headers: Record<string, string>) => void> {
    const { environmentId } = request.tenant;
    const leave = this.#enter(environmentId);
    try {
      const feed = this.#feedOf(request.tenant);
      await feed.start();
      return (response, headers) => {
        response.prependOnceListener('close', leave);
        if (response.closed || response.destroyed) leave();
        // Node sends nothing of a stream that answers HEAD, and would count.
        else if (response.req.method === 'HEAD') response.writeHead(200, streamHead(headers)).end();
        else this.#begin(request, feed, response, headers);
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const open of [...this.#open]) this.#end(open, 'draining');
    for (const feed of this.#feeds.values()) feed.close();
    return Promise.resolve();
  }

  #enter(environmentId: string): () => void {
    if (this.#isClosed) {
      const message = 'This instance is about to stop. Connect again.';
      throw new PublicError('UNAVAILABLE', { message, headers: { 'retry-after': '1' } });
    }
    const giveBack = this.#entered.take(environmentId);
    if (giveBack === null) throw rateLimited('Too many streams are open. Close one, or see Retry-After.', 5);
    return () => {
      giveBack();
      if (this.#entered.heldBy(environmentId) > 0) return;
      this.#feeds.get(environmentId)?.close();
      this.#feeds.delete(environmentId);
    };
  }

  #feedOf(tenant: Tenant): EventFeed {
    const { environmentId } = tenant;
    let feed = this.#feeds.get(environmentId);
    if (feed === undefined) {
      const wait = this.waiter.watch({ environmentId, roomId: null });
      feed = new EventFeed(this.reads.feed(tenant), wait, this.reads.onFailed);
      this.#feeds.set(environmentId, feed);
    }
    return feed;
  }

  #begin(request: StreamRequest, feed: EventFeed, response: ServerResponse, headers: Record<string, string>): void {
    const stream = new EventStream(response, headers, request);
    const spreadMs = (this.#opened++ * 7919) % AGE_SPREAD_MS;
    const open = { stream, request, feed, endsAtMs: performance.now() + STREAM_AGE_MS_MAX + spreadMs };
    this.#open.add(open);
    response.once('close', () => {
      this.#open.delete(open);
      feed.streams.delete(stream);
    });
    if (this.#isClosed) {
      this.#end(open, 'draining');
      return;
    }
    const seen = this.#seenOf(request.after);
    // A failed read ends the stream. The client connects again with the position that it has.
    feed.join(stream, seen, request.after !== null && seen === null).catch((error: unknown) => {
      this.reads.onFailed('backlog', error);
      response.destroy();
    });
    this.#timer ??= setTimeout(() => void this.#check(), CHECK_EVERY_MS);
  }

  /** Null: the client has no position, or it says nothing any more. */
  #seenOf(after: string | null): EventPosition | null {
    const position = after === null ? null : parsePosition(after);
    if (position === null) return null;
    // The client of an environment without events.
    if (position.transactionId === '0') return position;
    const oldest = firstIdAt('event', new Date(this.clock.now().getTime() - STREAM_POSITION_AGE_MS_MAX));
    return position.id < oldest ? null : position;
  }

  /** Never rejects. */
  async #check(): Promise<void> {
    const nowMs = performance.now();
    await Promise.all([...this.#open].map((open) => this.#checkOne(open, nowMs)));
    this.#timer =
      this.#isClosed || this.#open.size === 0 ? undefined : setTimeout(() => void this.#check(), CHECK_EVERY_MS);
  }

  async #checkOne(open: Open, nowMs: number): Promise<void> {
    // While PostgreSQL is away, the key cannot be checked, and the stream has no changes to send.
    const isValid = await open.request.isKeyValid().catch((error: unknown) => {
      this.reads.onFailed('callers', error);
      return true;
    });
    if (!isValid) this.#end(open, 'unauthenticated');
    else if (nowMs >= open.endsAtMs) this.#end(open, 'max_age');
    else open.stream.heartbeat();
  }

  #end(open: Open, reason: StreamEnd): void {
    open.feed.streams.delete(open.stream);
    open.stream.end(reason);
  }
}
