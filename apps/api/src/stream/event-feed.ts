import { STREAM_BACKLOG_MAX } from '@callplane/core';
import type { EventChange, EventPosition } from '@callplane/db';
import { type Logger, type Metrics, pause } from '@callplane/runtime';
import type { EventWaiter } from '../events/event-waiter.js';
import { changesOf, type EventStream } from './event-stream.js';

/** How long the feed waits for the next event before it asks again, in milliseconds. */
const WAIT_MS = 60_000;
const QUIET_PAUSE_MS = 100;
const FAILURE_PAUSE_MS = 1000;

export interface FeedReads {
  newest(): Promise<EventPosition>;
  after(position: EventPosition, until: EventPosition | null, limit: number): PromiseLike<EventChange[]>;
}

/** Reads the new events of one environment once for all its streams, and only while it has any. */
export class EventFeed {
  readonly streams = new Set<EventStream>();
  readonly #stop = new AbortController();
  /** Up to which the streams know all events. */
  #position: EventPosition | null = null;
  #starting: Promise<void> | undefined;

  constructor(
    private readonly reads: FeedReads,
    private readonly wait: ReturnType<EventWaiter['watch']>,
    private readonly onReadFailed: OnReadFailed,
  ) {}

  /** Resolves when a stream may join. A failed read fails all that wait, and the next call tries again. */
  async start(): Promise<void> {
    if (this.#position !== null) return;
    this.#starting ??= this.#begin().finally(() => (this.#starting = undefined));
    await this.#starting;
  }

  /**
   * Adds a stream after {@link start}, and sends it the changes that it has missed.
   * @param seen the position that its client has; null: a client without one, or one that cannot be known any more.
   * @param isLost whether the client had a position that cannot be known any more.
   */
  async join(stream: EventStream, seen: EventPosition | null, isLost: boolean): Promise<void> {
    const joinedAt = this.#position;
    if (joinedAt === null) throw new Error('the feed has not started');
    this.streams.add(stream);
    const { kinds } = stream.filter;
    stream.ready([...kinds], seen === null ? joinedAt : null);
    if (seen === null) {
      stream.begin(() => (isLost ? stream.reset(joinedAt) : undefined));
      return;
    }
    const missed = await this.reads.after(seen, joinedAt, STREAM_BACKLOG_MAX + 1);
    stream.begin(() => {
      if (missed.length > STREAM_BACKLOG_MAX) stream.reset(joinedAt);
      else stream.changes(changesOf(missed, stream.filter), missed.at(-1) ?? seen);
    });
  }

  close(): void {
    this.#stop.abort();
    this.wait.cancel();
  }

  async #begin(): Promise<void> {
    const position = await this.reads.newest();
    this.#position = position;
    void this.#run(position);
  }

  /** Never rejects. */
  async #run(from: EventPosition): Promise<void> {
    for (let position = from; !this.#stop.signal.aborted;) {
      try {
        const newest = await this.wait.next(position, WAIT_MS);
        // Null: nothing new, or the process drains, which closes the feed as well.
        if (newest === null) await pause(QUIET_PAUSE_MS, this.#stop.signal);
        else position = await this.#pass(position, newest);
      } catch (error) {
        // The feed continues from its position, so the streams miss nothing.
        this.onReadFailed('events', error);
        await pause(FAILURE_PAUSE_MS, this.#stop.signal);
      }
    }
  }

  /** Passes new events to the streams. @returns the position up to which the streams know all events. */
  async #pass(position: EventPosition, newest: EventPosition): Promise<EventPosition> {
    const events = await this.reads.after(position, null, STREAM_BACKLOG_MAX + 1);
    const isGap = events.length > STREAM_BACKLOG_MAX;
    const reached = isGap ? newest : (events.at(-1) ?? newest);
    this.#position = reached;
    for (const stream of this.streams) {
      if (isGap) stream.reset(reached);
      else stream.changes(changesOf(events, stream.filter), reached);
    }
    return reached;
  }
}

/**
 * `events`: new events of an environment. `backlog`: events that a client has missed. `callers`: whether the key or
 * session of a stream still works.
 */
const STREAM_READS = ['events', 'backlog', 'callers'] as const;
type StreamRead = (typeof STREAM_READS)[number];

/** Reports a read that failed. The streams stay open and the read is repeated, so no caller sees the error. */
export type OnReadFailed = (read: StreamRead, error: unknown) => void;

/** Shortest time between two lines about the same read, in milliseconds. Reads repeat every second during an outage. */
const LINE_EVERY_MS = 60_000;

/** Counts each failed read of the streams, and writes a line about it once a minute. */
export function reportReadFailures(
  logger: Logger,
  metrics: Metrics,
  monotonicMs: () => number = () => performance.now(),
): OnReadFailed {
  const failures = metrics.counter({
    name: 'callplane_stream_read_failures_total',
    help: 'Failed reads for the streams of changes, by kind of read.',
    labels: ['read'],
    known: STREAM_READS.map((read) => ({ read })),
  });
  const lines = new Map<StreamRead, { atMs: number; failed: number }>();
  return (read, error) => {
    failures.inc({ read });
    const nowMs = monotonicMs();
    const last = lines.get(read);
    const failed = (last?.failed ?? 0) + 1;
    if (last !== undefined && nowMs - last.atMs < LINE_EVERY_MS) {
      lines.set(read, { ...last, failed });
      return;
    }
    lines.set(read, { atMs: nowMs, failed: 0 });
    logger.warn('stream read failed', { read, failed, error });
  };
}
