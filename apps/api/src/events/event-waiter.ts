import { EVENT_READ_EVERY_MS, EVENT_WAITS_MAX, EVENT_WAITS_PER_ENVIRONMENT_MAX, rateLimited } from '@callplane/core';
import { latestSequences, newestEvents, type Database, type EventPosition } from '@callplane/db';
import { KeyedBound } from '@callplane/runtime';

/** The newest event of each environment and of each room that has events, by id. */
export interface Newest {
  environments: ReadonlyMap<string, EventPosition>;
  rooms: ReadonlyMap<string, number>;
}

export type ReadNewest = (environmentIds: readonly string[], roomIds: readonly string[]) => Promise<Newest>;

/** The scope in which a request waits for events: its environment, or one room of it. */
export interface Watched {
  environmentId: string;
  roomId: string | null;
}

interface Waiting extends Watched {
  seen: EventPosition | null;
  settle(position: EventPosition | null): void;
  fail(error: unknown): void;
}

/** Reads the newest positions with at most two statements, whatever the number of requests. */
export function readNewest({ sql }: Pick<Database, 'sql'>): ReadNewest {
  return async (environmentIds, roomIds) => {
    const [environments, rooms] = await Promise.all([
      environmentIds.length === 0 ? new Map<string, EventPosition>() : newestEvents(sql, environmentIds),
      roomIds.length === 0 ? new Map<string, number>() : latestSequences(sql, roomIds),
    ]);
    return { environments, rooms };
  };
}

/**
 * Wakes requests that wait for events. One timer reads the newest positions for all of them, and runs only while
 * requests wait. A waiting request holds no database connection (docs/decisions/0010).
 */
export class EventWaiter {
  readonly #everyMs: number;
  readonly #entered = new KeyedBound({ max: EVENT_WAITS_MAX, perKeyMax: EVENT_WAITS_PER_ENVIRONMENT_MAX });
  readonly #waiting = new Set<Waiting>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    private readonly read: ReadNewest,
    { everyMs = EVENT_READ_EVERY_MS } = {},
  ) {
    this.#everyMs = everyMs;
  }

  /** Requests with the right to wait. */
  get count(): number {
    return this.#entered.total;
  }

  /** @throws PublicError RATE_LIMITED if too many requests wait. */
  enter(watched: Watched) {
    const leave = this.#entered.take(watched.environmentId);
    if (leave === null) throw rateLimited('Too many requests wait for events. See Retry-After.');
    return { ...this.watch(watched), leave };
  }

  /** A wait that does not count, for a caller that has a limit itself: one for all streams of an environment. */
  watch(watched: Watched) {
    let isCancelled = false;
    let current: Waiting | undefined;
    return {
      /**
       * Waits for an event after `seen`. It may be of another type than the request wants.
       * @param seen the position up to which the request has read; null before the first event.
       * @returns a position that the request has not seen, or null when the time is over, the process drains or the
       *   wait is cancelled. Every event up to the position is visible to a read that begins now.
       * @throws the error of a failed read.
       */
      next: async (seen: EventPosition | null, ms: number): Promise<EventPosition | null> => {
        if (isCancelled || this.#closed || ms <= 0) return null;
        let timer: NodeJS.Timeout | undefined;
        try {
          return await new Promise<EventPosition | null>((settle, fail) => {
            current = { ...watched, seen, settle, fail };
            timer = setTimeout(() => settle(null), ms);
            this.#waiting.add(current);
            this.#schedule();
          });
        } finally {
          clearTimeout(timer);
          if (current !== undefined) this.#waiting.delete(current);
        }
      },
      /** Ends the wait early: the caller has closed the connection. */
      cancel: (): void => {
        isCancelled = true;
        current?.settle(null);
      },
    };
  }

  /** Wakes all waiting requests, so that each answers with the events that it has. */
  close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const waiting of [...this.#waiting]) waiting.settle(null);
    return Promise.resolve();
  }

  #schedule(): void {
    if (this.#closed) return;
    this.#timer ??= setTimeout(() => void this.#tick(), this.#everyMs);
  }

  /** Never rejects. The next read begins after this one has ended, so reads never overlap. */
  async #tick(): Promise<void> {
    // Only these: a request that begins to wait during the read has read its events before, and gets the next tick.
    const waiting = [...this.#waiting];
    if (waiting.length > 0) {
      try {
        this.#wake(waiting, await this.read(idsOf(waiting, 'environmentId'), idsOf(waiting, 'roomId')));
      } catch (error) {
        for (const each of waiting) each.fail(error);
      }
    }
    this.#timer = undefined;
    if (this.#waiting.size > 0) this.#schedule();
  }

  #wake(waiting: readonly Waiting[], newest: Newest): void {
    for (const each of waiting) {
      const position = positionOf(each, newest);
      if (position !== null && isNew(each, position)) each.settle(position);
    }
  }
}

/** The distinct ids to read: of rooms, or of the environments of requests that watch no room. */
function idsOf(waiting: readonly Waiting[], name: 'environmentId' | 'roomId'): string[] {
  const ids = waiting.map((each) =>
    name === 'roomId' ? each.roomId : each.roomId === null ? each.environmentId : null,
  );
  return [...new Set(ids.filter((id) => id !== null))];
}

function positionOf({ environmentId, roomId }: Watched, { environments, rooms }: Newest): EventPosition | null {
  if (roomId === null) return environments.get(environmentId) ?? null;
  const sequence = rooms.get(roomId);
  return sequence === undefined ? null : roomPosition(roomId, sequence);
}

/** Sorts before the id of every event. */
export const FIRST_EVENT_ID = `evt_${'0'.repeat(26)}`;

/** The position before the first event of an environment. */
export const BEFORE_ALL: EventPosition = { id: FIRST_EVENT_ID, roomId: null, sequence: null, transactionId: '0' };

/** The position of an event of a room, whose list reads only the sequence. */
export function roomPosition(roomId: string, sequence: number): EventPosition {
  return { id: FIRST_EVENT_ID, roomId, sequence, transactionId: '0' };
}

function isNew({ roomId, seen }: Waiting, position: EventPosition): boolean {
  if (seen === null) return true;
  if (roomId !== null) return (position.sequence ?? 0) > (seen.sequence ?? 0);
  const [transaction, before] = [BigInt(position.transactionId), BigInt(seen.transactionId)];
  return transaction === before ? position.id > seen.id : transaction > before;
}
