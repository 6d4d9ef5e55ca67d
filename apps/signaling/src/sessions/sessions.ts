import { CLOSE_REASONS } from '@callplane/protocol';
import type { Turns } from '@callplane/runtime';
import type { Connection } from '../connections/connection.js';
import type { Ending } from '../connections/ending.js';
import type { MediaWrites } from '../media/media-writes.js';
import type { SessionMedia } from '../media/session-media.js';
import type { Departure, Room, RoomMember } from '../rooms/room.js';
import type { Rooms } from '../rooms/rooms.js';
import { endOf, overBecause } from './departures.js';
import type { Heartbeat } from './heartbeat.js';
import type { SessionEvent } from './session-states.js';
import { Qualities } from './qualities.js';
import { SessionWrites, type SessionWritesDeps } from './session-writes.js';
import { Session, type SessionFacts, type SessionOver, type SessionPort } from './session.js';

export interface SessionsDeps extends SessionWritesDeps {
  mediaWrites: Pick<MediaWrites, 'flush' | 'overwritten'>;
  heartbeat: Pick<Heartbeat, 'steadyMs'>;
  reconnectGraceSeconds: number;
}

/** The sessions that this instance holds, from the commit of a join or resumption until they end or move elsewhere. */
export class Sessions implements SessionPort {
  readonly writes: SessionWrites;
  readonly qualities: Qualities;
  readonly reconnectGraceMs: number;
  readonly #deps: SessionsDeps;
  readonly #rooms: Rooms;
  readonly #createMedia: (session: Session) => SessionMedia;
  readonly #sessions = new Map<string, Session>();
  readonly #ofConnection = new WeakMap<Connection, Session>();

  /** @param turns limits the batches of writes that use the database at once */
  constructor(deps: SessionsDeps, rooms: Rooms, turns: Turns, createMedia: (session: Session) => SessionMedia) {
    this.#deps = deps;
    this.#rooms = rooms;
    this.#createMedia = createMedia;
    this.reconnectGraceMs = deps.reconnectGraceSeconds * 1000;
    this.writes = new SessionWrites(deps, rooms, turns);
    this.qualities = new Qualities(deps, turns);
  }

  get count(): number {
    return this.#sessions.size;
  }

  get all(): Iterable<Session> {
    return this.#sessions.values();
  }

  get(sessionId: string): Session | undefined {
    return this.#sessions.get(sessionId);
  }

  /** The session of a connection, from the commit of its join or resumption on. */
  of(connection: Connection): Session | undefined {
    return this.#ofConnection.get(connection);
  }

  /**
   * Takes over a session whose row names this instance. The welcome follows.
   * @param room acquired by the caller; the session releases it when it is gone
   */
  add(room: Room, connection: Connection, facts: SessionFacts & { isResumed: boolean }): Session {
    const session = new Session(this, room, connection, facts, this.#createMedia);
    this.#sessions.set(session.sessionId, session);
    this.#ofConnection.set(connection, session);
    // The connection may have ended during the commit.
    if (connection.ending !== null) session.dispatch(eventOf(connection.ending));
    return session;
  }

  /** Moves a session that this instance holds to another connection. The welcome follows. */
  resumeHere(session: Session, connection: Connection, connectionNumber: number): void {
    session.resumeHere(connection, connectionNumber);
    this.#ofConnection.set(connection, session);
    if (connection.ending !== null) session.dispatch(eventOf(connection.ending));
  }

  /** Call this when a connection has ended, for whatever reason. */
  onConnectionEnd(connection: Connection, ending: Ending): void {
    const session = this.#ofConnection.get(connection);
    if (session?.connection !== connection) return;
    session.dispatch(eventOf(ending));
  }

  /** Call this when a room shows that this instance no longer holds a member's session. */
  onDeparture(member: RoomMember, departure: Departure): void {
    const session = this.#sessions.get(member.sessionId);
    if (session === undefined || session !== member) return;
    if (departure === 'moved') session.dispatch('resumedElsewhere');
    else if (departure === 'room_ended') session.dispatch('ended', overBecause(departure));
    // In `ending`, the room usually shows the end that this instance writes. `writeEnd` dispatches the outcome.
    else if (session.state === 'ending') return;
    else if (departure === 'missing') this.writes.track(this.#onMissing(session));
    else session.dispatch('ended', overBecause(departure));
  }

  /**
   * Lets other instances take over; no participant leaves. Resolves when all writes are done and the media is released.
   */
  async drain(): Promise<void> {
    // Sessions in their grace period are not written again.
    await this.#deps.mediaWrites.flush();
    for (const session of [...this.#sessions.values()]) session.dispatch('drained');
    await this.writes.drain();
    this.qualities.close();
  }

  /** No client can resume its session during an outage of PostgreSQL, so the grace period begins anew after it. */
  graceLeftMs(): number {
    return Math.max(0, this.reconnectGraceMs - this.#deps.heartbeat.steadyMs);
  }

  markLost(session: Session): void {
    this.qualities.lose(session.sessionId);
    this.#deps.mediaWrites.overwritten(session);
    const written = this.writes.markLost({ ...session.held, media: session.mediaState }, session.roomId);
    this.writes.track(written.finally(() => this.#deps.mediaWrites.overwritten(session)));
  }

  writeEnd(session: Session, reason: 'left' | 'connection_lost'): void {
    const { held } = session;
    const written = this.writes.end(held, session.roomId, reason).then((isWritten) => {
      // The session was resumed here meanwhile, and the write had no effect.
      if (session.connectionNumber !== held.connection) return;
      session.dispatch(isWritten ? 'endWritten' : 'notHeld', overBecause(reason));
    });
    this.writes.track(written);
  }

  onGone(session: Session, mediaEnded: Promise<void>, over: SessionOver | null): void {
    session.room.remove(session);
    this.writes.track(this.qualities.end(session.sessionId));
    if (this.#sessions.get(session.sessionId) === session) this.#sessions.delete(session.sessionId);
    this.writes.track(this.#release(session, mediaEnded, over));
  }

  onUnexpected(session: Session, event: SessionEvent): void {
    const { sessionId, state } = session;
    this.#deps.logger.error('event impossible in this state', { sessionId, state, event });
  }

  async #release(session: Session, mediaEnded: Promise<void>, over: SessionOver | null): Promise<void> {
    try {
      await mediaEnded;
      // The clean-up of a removal waits for this, and the participant of a room that ends may be in removal, too. The
      // clean-up of a room itself does not wait.
      if (over?.reason === 'removed' || over?.reason === 'room_ended') await this.writes.release(session.held);
    } finally {
      this.#rooms.release(session.room);
    }
  }

  /** The session is not among the live ones of its room. Its row says why. */
  async #onMissing(session: Session): Promise<void> {
    const { held } = session;
    const over = await endOf(this.#deps, this.writes, session);
    if (session.connectionNumber === held.connection) session.dispatch('ended', over);
  }
}

function eventOf(ending: Ending): SessionEvent {
  if (ending === 'drain') return 'drained';
  if (ending === 'lost' || ending === 'moved' || CLOSE_REASONS[ending].reconnect === 'resume') return 'lost';
  return 'closedForGood';
}
