import type { Clock, PaceTimes, QualitySeconds } from '@callplane/core';
import {
  addQuality,
  endSessions,
  isDatabaseUnavailable,
  joinSessions,
  markDisconnected,
  releaseSession,
  resumeSessions,
  setTracksMuted,
  updateOwnMetadata,
  type Database,
  type DisconnectedSession,
  type HeldSession,
  type JoinInput,
  type JoinOutcome,
  type MetadataChange,
  type MuteChange,
  type ResumeInput,
  type ResumeOutcome,
} from '@callplane/db';
import type { JobProducer } from '@callplane/queue';
import { Batches, ONE_QUEUE, type BatchSettings, type Limit, type Logger } from '@callplane/runtime';
import pLimit from 'p-limit';
import type { BatchName, SignalingMetrics } from '../metrics.js';
import type { Rooms } from '../rooms/rooms.js';

const WRITE_AGAIN_MS = 1000;
/** Maximum number of attempts of a write. If all fail, a sweep or a clean-up makes it later. */
const TRIES_MAX = 30;

export interface WritesDeps {
  clock: Clock;
  database: Database;
  databasePoolMax: number;
  logger: Logger;
  metrics: Pick<SignalingMetrics, 'batch'>;
  producer: JobProducer;
  arrivalLimits: { joins: PaceTimes; resumptions: PaceTimes };
  rosterFullMax: number;
}

/** Whether a client still waits for this instance. */
export type ClientState = 'waiting' | 'drain' | 'disconnected';

interface Waiting<Input> {
  input: Input;
  /** Called when the batch begins. */
  clientState: () => ClientState;
}

/** Nothing was written for this client. */
export interface NotWritten {
  outcome: 'drain' | 'disconnected';
}

type EndReason = 'left' | 'connection_lost';

/**
 * The writes of this gateway about sessions. The writes of a room run in batches, one after the other, so that a room
 * that another transaction has locked delays no other room.
 */
export class Writes {
  readonly #arrivals: ReturnType<typeof arrivalBatches>;
  readonly #changes: ReturnType<typeof changeBatches>;
  readonly #ends: Record<EndReason, ReturnType<typeof endBatches>>;
  readonly #pending = new Set<Promise<unknown>>();
  #isDraining = false;

  constructor(
    private readonly deps: WritesDeps,
    rooms: Pick<Rooms, 'changed'>,
  ) {
    // Arrivals share one half of the database pool, so that departures and requests keep the other half.
    const half = Math.max(1, Math.floor(deps.databasePoolMax / 2));
    const others = pLimit(half);
    this.#arrivals = arrivalBatches(deps, pLimit(half));
    this.#changes = changeBatches(deps, rooms, others);
    const ends = (reason: EndReason) => endBatches(deps, rooms, others, reason);
    this.#ends = { left: ends('left'), connection_lost: ends('connection_lost') };
  }

  /** @param clientState is called when its batch begins, and before it is written or its transaction commits */
  join(input: JoinInput, clientState: () => ClientState): Promise<JoinOutcome | NotWritten> {
    const watched = { ...input, isWaiting: () => clientState() !== 'disconnected' };
    return this.#arrivals.joins.add(input.roomId, { input: watched, clientState });
  }

  /** @param roomId as the client says. With a wrong one or none, the resumption only waits in another queue. */
  resume(
    roomId: string | undefined,
    input: ResumeInput,
    clientState: () => ClientState,
  ): Promise<ResumeOutcome | NotWritten> {
    return this.#arrivals.resumptions.add(roomId ?? input.sessionId, { input, clientState });
  }

  async markLost(lost: DisconnectedSession, roomId: string): Promise<void> {
    await this.retry('session not marked as disconnected', lost.sessionId, TRIES_MAX, async () => {
      await this.#changes.disconnections.add(roomId, lost);
    });
  }

  /** @returns whether the end was written; another connection may hold the session by now */
  async end(held: HeldSession, roomId: string, reason: EndReason): Promise<boolean> {
    let isWritten = false;
    await this.retry('session not ended', held.sessionId, TRIES_MAX, async () => {
      isWritten = await this.#ends[reason].add(roomId, held);
    });
    return isWritten;
  }

  /** The clean-up of a removal waits for this; if it waits in vain, it makes another attempt later. */
  async release(held: HeldSession): Promise<void> {
    await this.retry('session not released', held.sessionId, 3, async () => {
      await releaseSession(this.deps.database.sql, held);
    });
  }

  /** @returns false if this instance does not hold the session any more */
  metadata(roomId: string, change: MetadataChange): Promise<boolean> {
    return this.#changes.metadata.add(roomId, change);
  }

  /** @returns false if this instance does not hold the session any more, or it has no such track */
  mute(roomId: string, change: MuteChange): Promise<boolean> {
    return this.#changes.mutes.add(roomId, change);
  }

  /** Adds the seconds that a session was in each level of quality. The statement waits for no lock of a room. */
  async addQuality(sessionId: string, seconds: QualitySeconds): Promise<void> {
    await this.#changes.quality.add(ONE_QUEUE, { sessionId, seconds });
  }

  /** Retries `work` while the database is unavailable. Never rejects: a sweep or clean-up replaces failed work. */
  async retry(message: string, sessionId: string, triesMax: number, work: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await work();
        return;
      } catch (error) {
        const again = tries < triesMax && !this.#isDraining && isDatabaseUnavailable(error);
        this.deps.logger[again ? 'warn' : 'error'](message, { sessionId, tries, error });
        if (!again) return;
        await new Promise((resolve) => setTimeout(resolve, WRITE_AGAIN_MS));
      }
    }
  }

  track(work: Promise<unknown>): void {
    const tracked = work
      .catch((error: unknown) => this.deps.logger.error('session task failed', { error }))
      .finally(() => this.#pending.delete(tracked));
    this.#pending.add(tracked);
  }

  /** Resolves when no work is pending. From the call on, failed writes are not retried. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    while (this.#pending.size > 0) await Promise.allSettled([...this.#pending]);
  }
}

function arrivalBatches(deps: WritesDeps, limit: Limit) {
  const { clock, database, rosterFullMax } = deps;
  const { joins, resumptions } = deps.arrivalLimits;
  return {
    joins: batchesOf<Waiting<JoinInput>, JoinOutcome | NotWritten>(deps.metrics, {
      name: 'joins',
      sizeMax: 100,
      limit,
      runsAlone: (error) => !isDatabaseUnavailable(error),
      ownerOf: ({ input }) => input.participantId,
      run: (roomId, items) =>
        runWaiting(items, (inputs) =>
          joinSessions(database, roomId, inputs, clock.now(), { pace: joins, rosterFullMax }),
        ),
    }),
    resumptions: batchesOf<Waiting<ResumeInput>, ResumeOutcome | NotWritten>(deps.metrics, {
      name: 'resumptions',
      sizeMax: 100,
      limit,
      ownerOf: ({ input }) => input.sessionId,
      run: (_, items) => runWaiting(items, (inputs) => resumeSessions(database, inputs, resumptions)),
    }),
  };
}

function changeBatches(deps: WritesDeps, rooms: Pick<Rooms, 'changed'>, limit: Limit) {
  const { database } = deps;
  return {
    disconnections: batchesOf<DisconnectedSession, true>(deps.metrics, {
      name: 'disconnections',
      sizeMax: 500,
      limit,
      ownerOf: ({ sessionId }) => sessionId,
      run: async (roomId, lost) => {
        if ((await markDisconnected(database, lost)).length > 0) await rooms.changed(roomId);
        return lost.map(() => true);
      },
    }),
    metadata: batchesOf<MetadataChange, boolean>(deps.metrics, {
      name: 'metadata',
      sizeMax: 100,
      ownerOf: ({ held }) => held.sessionId,
      run: async (roomId, changes) => {
        const written = await updateOwnMetadata(database, roomId, changes);
        // Without a write, the session has ended, and the room's changes say how.
        void rooms.changed(roomId);
        return changes.map(({ held }) => written.has(held.sessionId));
      },
    }),
    mutes: batchesOf<MuteChange, boolean>(deps.metrics, {
      name: 'mutes',
      sizeMax: 100,
      ownerOf: ({ held }) => held.sessionId,
      run: async (roomId, changes) => {
        const written = await setTracksMuted(database, changes);
        void rooms.changed(roomId);
        return written;
      },
    }),
    quality: batchesOf<{ sessionId: string; seconds: QualitySeconds }, true>(deps.metrics, {
      name: 'quality',
      sizeMax: 500,
      limit,
      ownerOf: ({ sessionId }) => sessionId,
      run: async (_, additions) => {
        await addQuality(database.sql, additions);
        return additions.map(() => true);
      },
    }),
  };
}

function endBatches(deps: WritesDeps, rooms: Pick<Rooms, 'changed'>, limit: Limit, reason: EndReason) {
  const { clock, database, producer } = deps;
  return batchesOf<HeldSession, boolean>(deps.metrics, {
    name: 'ends',
    sizeMax: 100,
    limit,
    ownerOf: ({ sessionId }) => sessionId,
    run: async (roomId, held) => {
      const { ended, deliveries } = await endSessions(database, roomId, held, reason, clock.now());
      void producer.wakeDeliveries(deliveries);
      if (ended.length > 0) await rooms.changed(roomId);
      const ids = new Set(ended.map(({ sessionId }) => sessionId));
      return held.map(({ sessionId }) => ids.has(sessionId));
    },
  });
}

/** Batches by room, in which items of the same owner run one after the other. */
function batchesOf<Item, Result>(
  metrics: WritesDeps['metrics'],
  { name, ...settings }: BatchSettings<Item, Result> & { name: BatchName; ownerOf(item: Item): string },
): Batches<Item, Result> {
  return new Batches({ ...settings, onBatch: (size, durationMs) => metrics.batch(name, size, durationMs) });
}

/**
 * Runs a batch without the clients that disconnected while they waited. In a drain, clients whose batch has not begun
 * go to another instance. The drain finishes the batches that have begun.
 */
async function runWaiting<Input, Outcome>(
  items: readonly Waiting<Input>[],
  run: (inputs: Input[]) => Promise<Outcome[]>,
): Promise<(Outcome | NotWritten)[]> {
  const states = items.map((item) => item.clientState());
  const inputs = items.filter((_, index) => states[index] === 'waiting').map(({ input }) => input);
  const outcomes = inputs.length === 0 ? [] : await run(inputs);
  if (outcomes.length !== inputs.length) throw new Error('a result of the batch is missing');
  const next = outcomes.values();
  return states.map((state) => (state === 'waiting' ? (next.next().value as Outcome) : { outcome: state }));
}
