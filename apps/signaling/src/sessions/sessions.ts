import { bucketTimes, TokenBucket, type BucketSettings, type Clock, type SessionEndReason } from '@callplane/core';
import { readSessionEnd, sessionsHeldBy, type Database } from '@callplane/db';
import { CLOSE_REASONS, type CloseReason } from '@callplane/protocol';
import type { Logger } from '@callplane/runtime';
import { DRAINS, type Client, type Ending } from '../clients/client.js';
import type { MediaWrites } from '../media/media-writes.js';
import type { SessionMedia } from '../media/session-media.js';
import type { Departure, RoomMember } from '../rooms/changes.js';
import type { Room } from '../rooms/room.js';
import type { Rooms } from '../rooms/rooms.js';
import type { Writes } from '../writes/writes.js';
import type { Heartbeat } from './heartbeat.js';
import type { Qualities } from './quality-seconds.js';
import {
  Session,
  type RequestLimits,
  type SessionEvent,
  type SessionFacts,
  type SessionOver,
  type SessionPort,
} from './session.js';

/** The join behind a session row younger than this may still be in progress here, in milliseconds. */
const GHOST_AGE_MS = 30_000;

export const CLOSE_REASON_OF_END = {
  left: 'left',
  removed: 'removed',
  room_ended: 'room_ended',
  superseded: 'superseded',
  moved: 'moved',
  // The cleanup worker counted an open connection as lost, e.g. because this instance was cut off for long.
  connection_lost: 'invalid_session',
} as const satisfies Record<SessionEndReason, CloseReason>;

export interface SessionsDeps {
  clock: Clock;
  database: Database;
  heartbeat: Pick<Heartbeat, 'steadyMs'>;
  instanceId: string;
  logger: Logger;
  mediaWrites: Pick<MediaWrites, 'flush'>;
  qualities: Qualities;
  reconnectGraceSeconds: number;
  /** Of one client: `message` and `metadata`. */
  requestLimits: { messages: BucketSettings; metadata: BucketSettings };
  rooms: Rooms;
  writes: Writes;
}

/** The sessions that this instance holds, from the commit of a join or resumption until they end or move elsewhere. */
export class Sessions implements SessionPort {
  readonly reconnectGraceMs: number;
  readonly #sessions = new Map<string, Session>();
  readonly #ofClient = new WeakMap<Client, Session>();

  constructor(
    private readonly deps: SessionsDeps,
    private readonly createMedia: (session: Session) => SessionMedia,
  ) {
    this.reconnectGraceMs = deps.reconnectGraceSeconds * 1000;
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

  of(client: Client): Session | undefined {
    return this.#ofClient.get(client);
  }

  /** @param room acquired by the caller; the session releases it when it is gone */
  add(room: Room, client: Client, facts: SessionFacts & { isResumed: boolean }): Session {
    const session = new Session(this, room, client, facts, this.createMedia);
    this.#sessions.set(session.sessionId, session);
    this.#bind(client, session);
    return session;
  }

  resumeHere(session: Session, client: Client, connectionNumber: number): void {
    session.resumeHere(client, connectionNumber);
    this.#bind(client, session);
  }

  onClientEnd(client: Client, ending: Ending): void {
    const session = this.#ofClient.get(client);
    if (session?.client === client) session.dispatch(eventOf(ending));
  }

  /** Call this when a room shows that this instance no longer holds a member's session. */
  onDeparture(member: RoomMember, departure: Departure): void {
    const session = this.#sessions.get(member.sessionId);
    if (session === undefined || session !== member) return;
    if (departure === 'elsewhere') session.dispatch('resumedElsewhere');
    else if (departure === 'room_ended') session.dispatch('ended', overBecause(departure));
    // In `ending`, the room usually shows the end that this instance writes. `writeEnd` dispatches the outcome.
    else if (session.state === 'ending') return;
    else if (departure === 'missing') this.deps.writes.track(this.#onMissing(session));
    else session.dispatch('ended', overBecause(departure));
  }

  /**
   * Starts the grace period of sessions whose rows name this instance although it does not hold them. That happens when
   * PostgreSQL's answer to a join or resumption is lost.
   */
  async disownGhosts(isResuming: (sessionId: string) => boolean): Promise<void> {
    const { clock, database, instanceId, logger, writes } = this.deps;
    // A session may leave this instance while PostgreSQL answers.
    const held = new Set(this.#sessions.keys());
    const named = await sessionsHeldBy(database.sql, instanceId);
    const ghosts = named.filter(({ sessionId, startedAt }) => {
      const isFresh = clock.now().getTime() - startedAt.getTime() < GHOST_AGE_MS;
      return !isFresh && !held.has(sessionId) && !this.#sessions.has(sessionId) && !isResuming(sessionId);
    });
    for (const { sessionId } of ghosts) logger.warn('session has no connection', { sessionId });
    await Promise.all(
      ghosts.map(({ sessionId, connection, roomId }) => writes.markLost({ sessionId, connection }, roomId)),
    );
  }

  /** Lets other instances take over. Resolves when all writes are done and the media is released. */
  async drain(): Promise<void> {
    const { mediaWrites, qualities, writes } = this.deps;
    // Sessions in their grace period are not written again.
    await mediaWrites.flush();
    for (const session of [...this.#sessions.values()]) {
      session.client?.close('drain', { cause: DRAINS });
      session.dispatch('drained');
    }
    await writes.drain();
    qualities.close();
  }

  newLimits(): RequestLimits {
    const { messages, metadata } = this.deps.requestLimits;
    return {
      messages: new TokenBucket(bucketTimes(messages)),
      metadata: new TokenBucket(bucketTimes(metadata)),
    };
  }

  /** No client can resume its session during an outage of PostgreSQL, so the grace period begins anew after it. */
  graceLeftMs(): number {
    return Math.max(0, this.reconnectGraceMs - this.deps.heartbeat.steadyMs);
  }

  markLost(session: Session): void {
    const { qualities, writes } = this.deps;
    qualities.lose(session.sessionId);
    writes.track(writes.markLost({ ...session.held, media: session.media.record }, session.roomId));
  }

  writeEnd(session: Session, reason: 'left' | 'connection_lost'): void {
    const { held } = session;
    const { writes } = this.deps;
    const written = writes.end(held, session.roomId, reason).then((isWritten) => {
      // The session was resumed here meanwhile, and the write had no effect.
      if (session.connectionNumber !== held.connection) return;
      session.dispatch(isWritten ? 'endWritten' : 'notHeld', overBecause(reason));
    });
    writes.track(written);
  }

  onGone(session: Session, mediaEnded: Promise<void>, over: SessionOver | null): void {
    const { qualities, writes } = this.deps;
    session.room.remove(session);
    writes.track(qualities.end(session.sessionId));
    if (this.#sessions.get(session.sessionId) === session) this.#sessions.delete(session.sessionId);
    writes.track(this.#release(session, mediaEnded, over));
  }

  onUnexpected(session: Session, event: SessionEvent): void {
    const { sessionId, state } = session;
    this.deps.logger.error('event impossible in this state', { sessionId, state, event });
  }

  async #release(session: Session, mediaEnded: Promise<void>, over: SessionOver | null): Promise<void> {
    const { rooms, writes } = this.deps;
    try {
      await mediaEnded;
      // The clean-up of a removal waits for this, and the participant of a room that ends may be in removal, too. The
      // clean-up of a room itself does not wait.
      if (over?.reason === 'removed' || over?.reason === 'room_ended') await writes.release(session.held);
    } finally {
      rooms.release(session.room);
    }
  }

  #bind(client: Client, session: Session): void {
    this.#ofClient.set(client, session);
    // The client may have ended during the commit.
    if (client.ending !== null) this.onClientEnd(client, client.ending);
  }

  /** The session is not among the live ones of its room. Its row says why. */
  async #onMissing(session: Session): Promise<void> {
    const { held } = session;
    const over = await this.#endOf(session);
    if (session.connectionNumber === held.connection) session.dispatch('ended', over);
  }

  /** @returns the close reason for its client; `unavailable` if PostgreSQL does not answer. Never rejects. */
  async #endOf({ held, roomId, sessionId }: Session): Promise<SessionOver> {
    const { database, writes } = this.deps;
    let over: SessionOver = { reason: 'unavailable', cause: 'The reason why the session is missing cannot be read.' };
    await writes.retry('session end reason not loaded', sessionId, 3, async () => {
      const end = await readSessionEnd(database.sql, sessionId);
      over = overBecause(end ?? 'connection_lost');
      // The row says that the session is live, but its room does not show it. Ending it resolves the contradiction.
      if (end === null) await writes.end(held, roomId, 'connection_lost');
    });
    return over;
  }
}

function overBecause(reason: SessionEndReason): SessionOver {
  return { reason: CLOSE_REASON_OF_END[reason], cause: `session ended: ${reason}` };
}

function eventOf(ending: Ending): SessionEvent {
  if (ending === 'drain') return 'drained';
  if (ending === 'lost' || ending === 'elsewhere' || CLOSE_REASONS[ending].reconnect === 'resume') return 'lost';
  return 'closedForGood';
}
