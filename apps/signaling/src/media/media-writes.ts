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
const SESSIONS_PER_WRITE_MAX = 500;

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

/** @returns with `skipLocked` the ids of the sessions that were left out because another transaction has locked them */
export type WriteMedia = (
  records: { held: HeldSession; media: unknown }[],
  settings: { skipLocked: boolean },
) => Promise<{ written: ReadonlySet<string>; busy: ReadonlySet<string> }>;

export interface MediaWritesDeps {
  clock: Clock;
  database: Database;
  logger: Logger;
  producer: JobProducer;
  rooms: Pick<Rooms, 'changed'>;
  writes: Pick<Writes, 'mute'>;
  writeMedia: WriteMedia;
}

/** Writes the tracks of sessions, and where their media is: the latter a moment after it has changed. */
export class MediaWrites {
  readonly #deps: MediaWritesDeps;
  readonly #changed = new Set<RecordedSession>();
  /** The record of each session as this class wrote it last. */
  readonly #written = new WeakMap<RecordedSession, string>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | null = null;
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

  /** Writes all changed records now, and waits for locked rows. Never rejects: failed writes are repeated. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
    await this.#start(false);
  }

  /** Ends the timer. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#changed.clear();
    clearTimeout(this.#timer);
  }

  /** While a write is in progress, its end schedules the next one. */
  #schedule(afterMs: number): void {
    if (this.#writing === null && !this.#isClosed) this.#timer ??= setTimeout(() => void this.#start(true), afterMs);
  }

  #start(skipLocked: boolean): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writeAll(skipLocked).then((isDone) => {
      this.#writing = null;
      if (this.#changed.size > 0) this.#schedule(isDone ? WITHIN_MS : AGAIN_MS);
    });
    return this.#writing;
  }

  /** @returns false after a failure */
  async #writeAll(skipLocked: boolean): Promise<boolean> {
    const sessions = [...this.#changed];
    this.#changed.clear();
    for (let at = 0; at < sessions.length; at += SESSIONS_PER_WRITE_MAX) {
      try {
        await this.#writeSome(sessions.slice(at, at + SESSIONS_PER_WRITE_MAX), skipLocked);
      } catch (error) {
        this.#deps.logger.warn('media records not written', { sessions: sessions.length - at, error });
        for (const session of sessions.slice(at)) this.#putBack(session);
        return false;
      }
    }
    return true;
  }

  async #writeSome(sessions: readonly RecordedSession[], skipLocked: boolean): Promise<void> {
    const records = sessions
      // A session may have gone while the sessions before it were written.
      .filter(({ isGone }) => !isGone)
      .map((session) => ({ session, held: session.held, media: session.mediaState }))
      .filter(({ session, media }) => this.#isDue(session, media));
    if (records.length === 0) return;
    const rows = records.map(({ held, media }) => ({ held, media }));
    const outcome = await this.#deps.writeMedia(rows, { skipLocked });
    for (const { session, held } of records) {
      if (!outcome.written.has(held.sessionId)) this.#written.delete(session);
      if (outcome.busy.has(held.sessionId)) this.#putBack(session);
    }
  }

  /** Notes the record as written, before it is: another statement that follows calls `overwritten`. */
  #isDue(session: RecordedSession, media: unknown): boolean {
    const text = JSON.stringify(media);
    if (this.#written.get(session) === text) return false;
    this.#written.set(session, text);
    return true;
  }

  #putBack(session: RecordedSession): void {
    this.#written.delete(session);
    if (!session.isGone && !this.#isClosed) this.#changed.add(session);
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
