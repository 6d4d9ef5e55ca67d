import type { SessionEndReason } from '@callplane/core';
import { markDisconnected, readSessionEnd, sessionsHeldBy } from '@callplane/db';
import type { CloseReason } from '@callplane/protocol';
import { CLOSE_REASONS } from '@callplane/protocol';
import pLimit from 'p-limit';
import type { Connection, Ending } from '../connections/connection.js';
import type { Deps } from '../deps.js';
import type { Departure, RoomMember } from '../rooms/room-view.js';
import { Rooms } from '../rooms/rooms.js';
import type { LiveSession } from './live-session.js';
import { SessionWrites } from './session-writes.js';

/** A session younger than this may still be on its way from the database, in milliseconds. */
const GHOST_AGE_MS = 30_000;
const LEAVE_WITHIN_MS = 1000;

/** What a client is told whose session has ended. */
export const CLOSE_REASON_OF_END = {
  left: 'left',
  removed: 'removed',
  room_ended: 'room_ended',
  superseded: 'superseded',
  // Somebody else counted it as lost while its connection stood, e.g. because this instance was cut off for long.
  connection_lost: 'invalid_session',
} as const satisfies Record<SessionEndReason, CloseReason>;

/** The sessions that this instance holds: with a connection or waiting for one, until they end or go on elsewhere. */
export class Sessions {
  readonly rooms: Rooms;
  readonly writes: SessionWrites;
  /** Half of the database's connections, so that joins leave some to those who are in already. */
  readonly joinTurns: ReturnType<typeof pLimit>;
  readonly #deps: Deps;
  readonly #sessions = new Map<string, LiveSession>();
  readonly #ofConnection = new WeakMap<Connection, LiveSession>();
  /** Sessions whose resumption is under way. */
  readonly #resuming = new Set<string>();
  #draining = false;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.joinTurns = pLimit(Math.max(1, Math.floor(deps.databasePoolMax / 2)));
    this.rooms = new Rooms(deps, (member, departure) => this.#depart(member, departure));
    this.writes = new SessionWrites(deps, this.rooms);
  }

  get count(): number {
    return this.#sessions.size;
  }

  get isDraining(): boolean {
    return this.#draining;
  }

  get all(): Iterable<LiveSession> {
    return this.#sessions.values();
  }

  of(connection: Connection): LiveSession | undefined {
    return this.#ofConnection.get(connection);
  }

  get(sessionId: string): LiveSession | undefined {
    return this.#sessions.get(sessionId);
  }

  /**
   * Its connection has it from now on, and it is welcomed.
   * @returns false when it is not in its room any more: then it has been closed.
   */
  begin(session: LiveSession, connection: Connection, how: Parameters<LiveSession['welcome']>[0]): boolean {
    session.attach(connection);
    this.#ofConnection.set(connection, session);
    this.#sessions.set(session.sessionId, session);
    // Between the commit and this it was removed, superseded, resumed elsewhere, or ended with its room.
    const departure = session.view.departureOf(session);
    if (departure === null) {
      session.view.add(session);
      session.media.begin();
      if (session.welcome(how)) {
        session.media.start();
        return true;
      }
    }
    this.#depart(session, departure ?? 'missing');
    return false;
  }

  /** A session that is here goes on with another connection. */
  reconnect(session: LiveSession, connection: Connection, connectionNumber: number): void {
    const old = session.connection;
    clearTimeout(session.graceTimer);
    session.connectionNumber = connectionNumber;
    session.detach();
    session.attach(connection);
    this.#ofConnection.set(connection, session);
    old?.drop();
  }

  /** Its row may say that this instance has its connection before the instance knows. */
  async whileResuming(sessionId: string, work: () => Promise<void>): Promise<void> {
    this.#resuming.add(sessionId);
    try {
      await work();
    } finally {
      this.#resuming.delete(sessionId);
    }
  }

  async leave(session: LiveSession): Promise<void> {
    const written = this.writes.end(session.held, session.roomId, 'left');
    this.writes.track(written);
    // Without the database the client need not wait: it is written when the database is back.
    await Promise.race([written, new Promise((resolve) => setTimeout(resolve, LEAVE_WITHIN_MS))]);
    await this.close(session, 'left', false);
  }

  /**
   * Takes the session out of this instance.
   * @param reason what its client is told; null when it has gone, or has another connection.
   * @param release whether a clean-up waits until its media is given back.
   */
  async close(session: LiveSession, reason: CloseReason | null, release: boolean): Promise<void> {
    if (session.ended) return;
    session.ended = true;
    clearTimeout(session.graceTimer);
    const { held, connection } = session;
    session.view.remove(session);
    if (this.#sessions.get(session.sessionId) === session) this.#sessions.delete(session.sessionId);
    if (reason === null) connection?.drop();
    else connection?.close(reason);
    try {
      await session.media.close();
      if (release) await this.writes.release(held);
    } finally {
      this.rooms.release(session.view);
    }
  }

  /** A connection has ended, for whatever reason. */
  onConnectionEnd(connection: Connection, ending: Ending): void {
    const session = this.#ofConnection.get(connection);
    if (session === undefined || session.ended || session.connection !== connection) return;
    session.detach();
    if (ending === 'drain') {
      this.writes.track(this.#handOver(session));
    } else if (ending !== 'lost' && ending !== 'moved' && CLOSE_REASONS[ending].reconnect !== 'resume') {
      this.writes.track(this.#endNow(session));
    } else {
      this.writes.track(this.#grace(session));
    }
  }

  /** Lets others take over: nobody leaves by it. Resolves when it is written and the media is given back. */
  async drain(): Promise<void> {
    this.#draining = true;
    for (const session of [...this.#sessions.values()]) {
      if (session.connection === null) this.writes.track(this.close(session, null, false));
    }
    await this.writes.drain();
  }

  startDraining(): void {
    this.#draining = true;
  }

  /**
   * Rows that say that this instance has their connection, and it does not: the answer to a join or a resumption was
   * lost. Their grace begins.
   */
  async disownGhosts(): Promise<void> {
    const { clock, database, instanceId } = this.#deps;
    const rows = await sessionsHeldBy(database.hot, instanceId);
    for (const row of rows) {
      const known = this.#sessions.get(row.sessionId);
      // One that has just been written may be on its way to us.
      const fresh = clock.now().getTime() - row.startedAt.getTime() < GHOST_AGE_MS;
      if (known !== undefined || fresh || this.#resuming.has(row.sessionId)) continue;
      this.#deps.logger.warn('session without a connection', { sessionId: row.sessionId });
      if (await markDisconnected(database, row)) await this.rooms.changed(row.roomId, false);
    }
  }

  #depart(member: RoomMember, departure: Departure): void {
    const session = this.#sessions.get(member.sessionId);
    if (session !== member) return;
    if (departure === 'moved') this.writes.track(this.close(session, null, false));
    else if (departure === 'room_ended') this.writes.track(this.close(session, 'room_ended', true));
    else this.writes.track(this.#departMissing(session));
  }

  async #departMissing(session: LiveSession): Promise<void> {
    const { logger, database } = this.#deps;
    let reason = 'unavailable' as CloseReason;
    await this.writes.retry('session end not read', session.sessionId, 3, async () => {
      const ends = await readSessionEnd(database.hot, [session.sessionId]);
      const end = ends.get(session.sessionId);
      reason = CLOSE_REASON_OF_END[end ?? 'connection_lost'];
      // It goes on, and its room does not show it: that must not stay so.
      if (end === null) await this.writes.end(session.held, session.roomId, 'connection_lost');
    });
    logger.debug('session ended elsewhere', { sessionId: session.sessionId, reason });
    await this.close(session, reason, reason === 'removed' || reason === 'room_ended');
  }

  /** The connection is lost: the session waits for its client. */
  async #grace(session: LiveSession): Promise<void> {
    const { connectionNumber } = session;
    session.graceTimer = setTimeout(() => {
      if (session.ended || session.connectionNumber !== connectionNumber) return;
      this.writes.track(this.#endNow(session));
    }, this.#deps.reconnectGraceSeconds * 1000);
    await this.writes.markLost(session.held, session.roomId);
  }

  async #endNow(session: LiveSession): Promise<void> {
    await this.writes.end(session.held, session.roomId, 'connection_lost');
    // Resumed at the last moment: then the row says so, and the session goes on.
    if (session.connection === null) await this.close(session, null, false);
  }

  async #handOver(session: LiveSession): Promise<void> {
    await Promise.all([this.writes.markLost(session.held, session.roomId), this.close(session, null, false)]);
  }
}
