import type { Clock } from '@callplane/core';
import {
  publishTracks,
  unpublishAll,
  type Database,
  type HeldSession,
  type TracksOutcome,
  type TrackState,
} from '@callplane/db';
import type { JobProducer } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { Rooms } from '../rooms/rooms.js';
import type { Writes } from '../writes/writes.js';
import type { MediaRecord } from './record.js';

/** How long changes of records wait, so that one statement writes those of many sessions. */
const WITHIN_MS = 250;
const AGAIN_MS = 1000;

/** A session whose media another gateway may take over. */
export interface RecordedSession {
  /** Fencing token of the session's writes. */
  readonly held: HeldSession;
  readonly roomId: string;
  /** Whether this gateway has let go of the session. Its media may be another gateway's then, so nothing is written. */
  readonly isGone: boolean;
  /** Null without media. */
  readonly mediaState: unknown;
}

export interface MediaWritesDeps {
  clock: Clock;
  database: Database;
  logger: Logger;
  producer: JobProducer;
  rooms: Pick<Rooms, 'changed'>;
  writes: Pick<Writes, 'media' | 'mute'>;
}

/** Writes the tracks of sessions, and where their media is: the latter a moment after it has changed. */
export class MediaWrites {
  readonly #deps: MediaWritesDeps;
  readonly #changed = new Set<RecordedSession>();
  /** The record of each session as this class wrote it last. */
  readonly #written = new WeakMap<RecordedSession, string>();
  readonly #writing = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(deps: MediaWritesDeps) {
    this.#deps = deps;
  }

  /**
   * Writes the tracks that are published from now on, and where the session's media is.
   * @returns false if this connection no longer holds the session
   */
  async publish(session: RecordedSession, tracks: TrackState[], record: MediaRecord | null): Promise<boolean> {
    const { clock, database } = this.#deps;
    this.overwritten(session);
    try {
      return this.#wrote(session, await publishTracks(database, session.held, tracks, clock.now(), record));
    } finally {
      this.overwritten(session);
    }
  }

  async unpublishAll(session: RecordedSession): Promise<void> {
    const { clock, database } = this.#deps;
    this.#wrote(session, await unpublishAll(database, session.held, clock.now()));
  }

  async setMuted({ held, roomId }: RecordedSession, trackId: string, muted: boolean): Promise<void> {
    await this.#deps.writes.mute(roomId, { held, trackId, muted });
  }

  /** What another gateway would need to go on with the session's media has changed. */
  changed(session: RecordedSession): void {
    if (session.isGone) return;
    this.#changed.add(session);
    this.#schedule(WITHIN_MS);
  }

  /** Call this when another statement writes the record, before and after: the next change is written in any case. */
  overwritten(session: RecordedSession): void {
    this.#written.delete(session);
  }

  /** Writes all changed records now. Never rejects: failed writes are repeated. */
  async flush(): Promise<void> {
    this.#start();
    await Promise.all(this.#writing);
  }

  /** Ends the timer. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#changed.clear();
    clearTimeout(this.#timer);
  }

  #schedule(afterMs: number): void {
    if (!this.#isClosed) this.#timer ??= setTimeout(() => this.#start(), afterMs);
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const session of this.#changed) {
      const writing = this.#write(session).finally(() => this.#writing.delete(writing));
      this.#writing.add(writing);
    }
    this.#changed.clear();
  }

  async #write(session: RecordedSession): Promise<void> {
    const { sessionId } = session.held;
    try {
      const isHeld = await this.#deps.writes.media(session.roomId, sessionId, () => this.#take(session));
      if (!isHeld) this.#written.delete(session);
    } catch (error) {
      this.#deps.logger.warn('media record not written', { sessionId, error });
      this.#written.delete(session);
      if (session.isGone || this.#isClosed) return;
      this.#changed.add(session);
      this.#schedule(AGAIN_MS);
    }
  }

  /** The latest record; null if the session is gone, or the record is written already. */
  #take(session: RecordedSession): { held: HeldSession; media: unknown } | null {
    if (session.isGone) return null;
    const { held, mediaState: media } = session;
    return this.#isDue(session, media) ? { held, media } : null;
  }

  /** Notes the record as written, before it is: another statement that follows calls `overwritten`. */
  #isDue(session: RecordedSession, media: unknown): boolean {
    const text = JSON.stringify(media);
    if (this.#written.get(session) === text) return false;
    this.#written.set(session, text);
    return true;
  }

  /**
   * After a commit: wakes deliveries and notifies other gateways, best effort. Sweeps and resyncs make up for a lost
   * notice.
   */
  #wrote({ roomId }: RecordedSession, { written, deliveries }: TracksOutcome): boolean {
    if (!written) return false;
    void this.#deps.producer.wakeDeliveries(deliveries);
    void this.#deps.rooms.changed(roomId);
    return true;
  }
}
