import type { HeldSession } from '@callplane/db';
import type { Logger } from '@callplane/runtime';

/** How long changes wait, so that one statement writes those of many sessions. */
const WITHIN_MS = 250;
const AGAIN_MS = 1000;
const SESSIONS_PER_WRITE_MAX = 500;
/** Writes of a session whose row is locked, until `writeNow` rejects. */
const TRIES_MAX = 8;

/** A session whose media another gateway may take over. */
export interface HandedOver {
  readonly held: HeldSession;
  /** Null without media. */
  readonly mediaState: unknown;
}

/**
 * @returns the ids of the sessions whose state was written: this gateway holds them; with `skipLocked` the ids of those
 * that were left out because another transaction has locked them.
 */
export type WriteMedia = (
  states: { held: HeldSession; media: unknown }[],
  settings: { skipLocked: boolean },
) => Promise<{ written: Set<string>; busy: Set<string> }>;

/** Waits to learn whether this gateway holds a session. */
interface Asked {
  readonly isHeld: Promise<boolean>;
  resolve(isHeld: boolean): void;
  reject(error: unknown): void;
  tries: number;
}

/** Writes where the media of sessions is, a moment after it has changed: one statement at a time. */
export class MediaStateWrites {
  readonly #write: WriteMedia;
  readonly #logger: Logger;
  readonly #changed = new Set<HandedOver>();
  /** By sessions, which are in `#changed`, too. */
  readonly #asked = new Map<HandedOver, Asked>();
  /** The state of each session as this class wrote it last. */
  readonly #written = new WeakMap<HandedOver, string>();
  readonly #forgotten = new WeakSet<HandedOver>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | null = null;
  #isClosed = false;

  constructor(write: WriteMedia, logger: Logger) {
    this.#write = write;
    this.#logger = logger;
  }

  changed(session: HandedOver): void {
    if (this.#forgotten.has(session)) return;
    this.#changed.add(session);
    this.#schedule(WITHIN_MS);
  }

  /** Call this when another statement writes the state, before and after: the next change is written in any case. */
  overwritten(session: HandedOver): void {
    this.#written.delete(session);
  }

  /** The session is gone here. Its media may be another gateway's, so it is never written again. */
  forget(session: HandedOver): void {
    this.#forgotten.add(session);
    this.#changed.delete(session);
    this.#settle(session, false);
  }

  /**
   * Writes the session's state with the next statement, together with those of other sessions.
   * @returns whether this gateway holds the session
   */
  writeNow(session: HandedOver): Promise<boolean> {
    if (this.#forgotten.has(session) || this.#isClosed) return Promise.resolve(false);
    const asked = this.#asked.get(session) ?? newAsked();
    this.#asked.set(session, asked);
    this.#changed.add(session);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#schedule(0);
    return asked.isHeld;
  }

  /** Writes all changes now, and waits for locked rows. Never rejects: failed writes are repeated. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
    await this.#start(false);
  }

  /** Ends the timer. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#changed.clear();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const session of [...this.#asked.keys()]) this.#settle(session, false);
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
        this.#logger.warn('media states not written', { sessions: sessions.length - at, error });
        for (const session of sessions.slice(at)) {
          this.#putBack(session);
          this.#fail(session, error);
        }
        return false;
      }
    }
    return true;
  }

  async #writeSome(sessions: readonly HandedOver[], skipLocked: boolean): Promise<void> {
    // A session may have been forgotten while the sessions before it were written.
    const states = sessions
      .filter((session) => !this.#forgotten.has(session))
      .map((session) => ({ session, held: session.held, media: session.mediaState }))
      .filter(({ session, media }) => this.#isDue(session, media));
    if (states.length === 0) return;
    const outcome = await this.#write(
      states.map(({ held, media }) => ({ held, media })),
      { skipLocked },
    );
    for (const { session, held } of states) {
      const isWritten = outcome.written.has(held.sessionId);
      if (!isWritten) this.#written.delete(session);
      if (outcome.busy.has(held.sessionId)) this.#leftOut(session);
      else this.#settle(session, isWritten);
    }
  }

  /** Notes the state as written, before it is: another statement that follows calls `overwritten`. */
  #isDue(session: HandedOver, media: unknown): boolean {
    const text = JSON.stringify(media);
    if (this.#written.get(session) === text && !this.#asked.has(session)) return false;
    this.#written.set(session, text);
    return true;
  }

  #leftOut(session: HandedOver): void {
    this.#putBack(session);
    const asked = this.#asked.get(session);
    if (asked === undefined) return;
    asked.tries += 1;
    if (asked.tries >= TRIES_MAX) this.#fail(session, new Error('The row of the session is locked'));
  }

  #putBack(session: HandedOver): void {
    this.#written.delete(session);
    if (!this.#forgotten.has(session) && !this.#isClosed) this.#changed.add(session);
  }

  #settle(session: HandedOver, isHeld: boolean): void {
    this.#asked.get(session)?.resolve(isHeld);
    this.#asked.delete(session);
  }

  #fail(session: HandedOver, error: unknown): void {
    this.#asked.get(session)?.reject(error);
    this.#asked.delete(session);
  }
}

function newAsked(): Asked {
  let [resolve, reject]: [Asked['resolve'], Asked['reject']] = [() => undefined, () => undefined];
  const isHeld = new Promise<boolean>((...settle) => {
    [resolve, reject] = settle;
  });
  return { isHeld, resolve, reject, tries: 0 };
}
