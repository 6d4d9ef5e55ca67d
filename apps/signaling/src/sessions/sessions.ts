import { createHash, randomBytes } from 'node:crypto';
import type { SessionEndReason } from '@callplane/core';
import {
  joinRoom,
  markDisconnected,
  readSessionEnd,
  resumeSession,
  sessionsHeldBy,
  type HeldSession,
  type JoinInput,
  type JoinOutcome,
} from '@callplane/db';
import type { ClientMessages, CloseReason } from '@callplane/protocol';
import { CLOSE_REASONS } from '@callplane/protocol';
import pLimit from 'p-limit';
import type { Connection, Ending } from '../connections/connection.js';
import type { Deps } from '../deps.js';
import type { Departure, RoomMember } from '../rooms/room-view.js';
import { Rooms } from '../rooms/rooms.js';
import { LiveSession } from './live-session.js';
import { SessionWrites } from './session-writes.js';
import { verifyToken } from './verify-token.js';

const SECRET_BYTES = 32;
/** A session younger than this may still be on its way from the database, in milliseconds. */
const GHOST_AGE_MS = 30_000;
const LEAVE_WITHIN_MS = 1000;

const REFUSALS = {
  room_ended: 'room_ended',
  removed: 'removed',
  token_revoked: 'invalid_token',
  capacity: 'capacity',
  // The token's signature was good: what it names was deleted, or never was in this deployment's database.
  not_found: 'invalid_token',
} as const satisfies Record<Exclude<JoinOutcome['outcome'], 'joined'>, CloseReason>;

const CLOSE_REASON_OF_END = {
  left: 'left',
  removed: 'removed',
  room_ended: 'room_ended',
  superseded: 'superseded',
  // Somebody else counted it as lost while its connection stood, e.g. because this instance was cut off for long.
  connection_lost: 'invalid_session',
} as const satisfies Record<SessionEndReason, CloseReason>;

/** The sessions of this instance: how they begin, go on elsewhere, and end. */
export class Sessions {
  readonly rooms: Rooms;
  readonly #deps: Deps;
  readonly #sessions = new Map<string, LiveSession>();
  readonly #ofConnection = new WeakMap<Connection, LiveSession>();
  /** Half of the database's connections, so that joins leave some to those who are in already. */
  readonly #joins: ReturnType<typeof pLimit>;
  /** Sessions whose resumption is under way. */
  readonly #resuming = new Set<string>();
  readonly #writes: SessionWrites;
  #draining = false;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#joins = pLimit(Math.max(1, Math.floor(deps.databasePoolMax / 2)));
    this.rooms = new Rooms(deps, (member, departure) => this.#depart(member, departure));
    this.#writes = new SessionWrites(deps, this.rooms);
  }

  get count(): number {
    return this.#sessions.size;
  }

  get all(): Iterable<LiveSession> {
    return this.#sessions.values();
  }

  of(connection: Connection): LiveSession | undefined {
    return this.#ofConnection.get(connection);
  }

  /** @throws when a dependency does not answer. */
  async join(connection: Connection, request: ClientMessages['join']): Promise<void> {
    const startedAtMs = performance.now();
    const { clock, database, instanceId, keys, places, tokens } = this.#deps;
    const log = (outcome: string, fields: object = {}): void =>
      this.#logJoin(connection, { outcome, startedAtMs, ...fields });
    const refuse = (reason: CloseReason, fields: object = {}): void => {
      connection.close(reason);
      log(reason, fields);
    };

    const verified = await verifyToken(keys, tokens, request.token, clock.now());
    if (!verified.ok) {
      refuse(verified.reason, { why: verified.why });
      return;
    }
    const { tenant, roomId, participantId, tokenId, permissions } = verified.claims;
    Object.assign(connection.logFields, { roomId, participantId, environmentId: tenant.environmentId });
    if (this.#draining) {
      refuse('drain');
      return;
    }
    if (request.requireMedia === true && !places.anyUp) {
      refuse('media_unavailable');
      return;
    }

    const secret = randomBytes(SECRET_BYTES).toString('base64url');
    const view = this.rooms.acquire(roomId);
    let session: LiveSession | undefined;
    let held: HeldSession | undefined;
    try {
      // Only a room that is nowhere yet takes it.
      const mediaNodeId = view.snapshot?.mediaNodeId ?? (await places.pick());
      const input: JoinInput = {
        tenant,
        roomId,
        participantId,
        tokenId,
        permissions,
        resumeSecretHash: hashOf(secret),
        instanceId,
        mediaNodeId,
      };
      const outcome = await view.joins(() =>
        this.#joins(async () => (connection.isOpen ? joinRoom(database, input, clock.now()) : null)),
      );
      if (outcome === null) {
        log('gone');
        return;
      }
      if (outcome.outcome !== 'joined') {
        refuse(REFUSALS[outcome.outcome], { cause: outcome.outcome });
        return;
      }
      const { sessionId, connection: connectionNumber } = outcome;
      held = { sessionId, connection: connectionNumber };
      connection.logFields['sessionId'] = sessionId;
      void this.#deps.producer.wakeDeliveries(outcome.deliveries);
      await this.#showChange(roomId, true);
      if (!connection.isOpen) {
        log('gone');
        return;
      }
      session = new LiveSession(this.#deps, this.rooms, view, {
        sessionId,
        tenant,
        roomId,
        participantId,
        permissions,
        connectionNumber,
        autoSubscribe: request.autoSubscribe ?? true,
      });
      const begun = this.#begin(session, connection, {
        replyTo: request.id,
        resumed: false,
        resumeSecret: secret,
        mediaContinued: false,
      });
      log(begun ? 'joined' : 'ended at once');
    } finally {
      // From its beginning on the session holds the view.
      if (session === undefined) {
        this.rooms.release(view);
        // It is in the room and nobody can come back to it: the secret was never told.
        if (held !== undefined) this.#writes.track(this.#writes.end(held, roomId, 'connection_lost'));
      }
    }
  }

  /** @throws when a dependency does not answer. */
  async resume(connection: Connection, request: ClientMessages['resume']): Promise<void> {
    this.#resuming.add(request.sessionId);
    try {
      await this.#resume(connection, request);
    } finally {
      this.#resuming.delete(request.sessionId);
    }
  }

  async #resume(connection: Connection, request: ClientMessages['resume']): Promise<void> {
    const startedAtMs = performance.now();
    const { database, instanceId } = this.#deps;
    const log = (outcome: string, fields: object = {}): void =>
      this.#logJoin(connection, { outcome, startedAtMs, resumed: true, ...fields });
    if (this.#draining) {
      connection.close('drain');
      log('drain');
      return;
    }
    const { sessionId, resumeSecret } = request;
    const resumeSecretHash = hashOf(resumeSecret);
    const outcome = await resumeSession(database, { sessionId, resumeSecretHash, instanceId });
    if (outcome.outcome !== 'resumed') {
      const reason = outcome.outcome === 'unknown' ? 'invalid_session' : CLOSE_REASON_OF_END[outcome.reason];
      connection.close(reason);
      log(reason);
      return;
    }
    const { tenant, roomId, participantId, permissions, connection: connectionNumber } = outcome;
    Object.assign(connection.logFields, { sessionId, roomId, participantId, environmentId: tenant.environmentId });

    const known = this.#sessions.get(sessionId);
    if (known !== undefined && known.connectionNumber >= connectionNumber) {
      // Another connection has resumed it meanwhile.
      connection.drop();
      log('overtaken');
      return;
    }
    const here =
      known !== undefined &&
      !known.ended &&
      outcome.previousInstanceId === instanceId &&
      known.connectionNumber === connectionNumber - 1;
    if (known !== undefined && !here) this.#writes.track(this.#close(known, null, false));

    const view = this.rooms.acquire(roomId);
    let begun = false;
    let session: LiveSession;
    if (here) {
      session = known;
      const old = session.connection;
      clearTimeout(session.graceTimer);
      session.connectionNumber = connectionNumber;
      session.detach();
      session.attach(connection);
      this.#ofConnection.set(connection, session);
      old?.drop();
    } else {
      session = new LiveSession(this.#deps, this.rooms, view, {
        sessionId,
        tenant,
        roomId,
        participantId,
        permissions,
        connectionNumber,
        autoSubscribe: true,
      });
    }
    session.autoSubscribe = request.autoSubscribe ?? true;
    try {
      await this.#showChange(roomId, false);
      const mediaContinued = here && session.media.resumed(request.continueMedia !== false);
      const current = this.#sessions.get(sessionId);
      const overtaken =
        session.connectionNumber !== connectionNumber ||
        (current !== undefined && current.connectionNumber > connectionNumber);
      if (!connection.isOpen || session.ended || overtaken) {
        connection.drop();
        log(overtaken ? 'overtaken' : 'gone');
        return;
      }
      if (current !== undefined && current !== session) this.#writes.track(this.#close(current, null, false));
      begun = true;
      const welcomed = this.#begin(session, connection, {
        replyTo: request.id,
        resumed: true,
        resumeSecret,
        mediaContinued,
      });
      log(welcomed ? 'resumed' : 'ended at once', { here, mediaContinued });
      if (welcomed && !here) session.media.expectRepublish();
    } finally {
      // From its beginning on the session holds the view; one that was here holds it already.
      if (here || !begun) this.rooms.release(view);
      if (!here && !begun) this.#writes.track(this.#writes.markLost(session.held, session.roomId));
    }
  }

  async leave(session: LiveSession): Promise<void> {
    const written = this.#writes.end(session.held, session.roomId, 'left');
    this.#writes.track(written);
    // Without the database the client need not wait: it is written when the database is back.
    await Promise.race([written, new Promise((resolve) => setTimeout(resolve, LEAVE_WITHIN_MS))]);
    await this.#close(session, 'left', false);
  }

  /** A connection has ended, for whatever reason. */
  onConnectionEnd(connection: Connection, ending: Ending): void {
    const session = this.#ofConnection.get(connection);
    if (session === undefined || session.ended || session.connection !== connection) return;
    session.detach();
    if (ending === 'drain') {
      this.#writes.track(this.#handOver(session));
    } else if (ending !== 'lost' && ending !== 'moved' && CLOSE_REASONS[ending].reconnect !== 'resume') {
      this.#writes.track(this.#endNow(session));
    } else {
      this.#writes.track(this.#grace(session));
    }
  }

  /** Lets others take over: nobody leaves by it. Resolves when it is written and the media is given back. */
  async drain(): Promise<void> {
    this.#draining = true;
    for (const session of [...this.#sessions.values()]) {
      if (session.connection === null) this.#writes.track(this.#close(session, null, false));
    }
    await this.#writes.drain();
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

  /**
   * After a commit that the client waits for: this instance's view has it, others are told.
   * @throws when the room cannot be read.
   */
  async #showChange(roomId: string, event: boolean): Promise<void> {
    if (!event) void this.#deps.bus.publishChanged(roomId);
    const snapshot = await this.rooms.load(roomId);
    if (event) void this.#deps.bus.publishChanged(roomId, snapshot?.sequence);
  }

  #begin(session: LiveSession, connection: Connection, how: Parameters<LiveSession['welcome']>[0]): boolean {
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

  #depart(member: RoomMember, departure: Departure): void {
    const session = this.#sessions.get(member.sessionId);
    if (session !== member) return;
    if (departure === 'moved') this.#writes.track(this.#close(session, null, false));
    else if (departure === 'room_ended') this.#writes.track(this.#close(session, 'room_ended', true));
    else this.#writes.track(this.#departMissing(session));
  }

  async #departMissing(session: LiveSession): Promise<void> {
    const { logger, database } = this.#deps;
    let reason = 'unavailable' as CloseReason;
    await this.#writes.retry('session end not read', session.sessionId, 3, async () => {
      const ends = await readSessionEnd(database.hot, [session.sessionId]);
      const end = ends.get(session.sessionId);
      reason = CLOSE_REASON_OF_END[end ?? 'connection_lost'];
      // It goes on, and its room does not show it: that must not stay so.
      if (end === null) await this.#writes.end(session.held, session.roomId, 'connection_lost');
    });
    logger.debug('session ended elsewhere', { sessionId: session.sessionId, reason });
    await this.#close(session, reason, reason === 'removed' || reason === 'room_ended');
  }

  /** The connection is lost: the session waits for its client. */
  async #grace(session: LiveSession): Promise<void> {
    const { connectionNumber } = session;
    session.graceTimer = setTimeout(() => {
      if (session.ended || session.connectionNumber !== connectionNumber) return;
      this.#writes.track(this.#endNow(session));
    }, this.#deps.reconnectGraceSeconds * 1000);
    await this.#writes.markLost(session.held, session.roomId);
  }

  async #endNow(session: LiveSession): Promise<void> {
    await this.#writes.end(session.held, session.roomId, 'connection_lost');
    // Resumed at the last moment: then the row says so, and the session goes on.
    if (session.connection === null) await this.#close(session, null, false);
  }

  async #handOver(session: LiveSession): Promise<void> {
    await Promise.all([this.#writes.markLost(session.held, session.roomId), this.#close(session, null, false)]);
  }

  /** Takes the session out of this instance. */
  async #close(session: LiveSession, reason: CloseReason | null, release: boolean): Promise<void> {
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
      if (release) await this.#writes.release(held);
    } finally {
      this.rooms.release(session.view);
    }
  }

  #logJoin(
    connection: Connection,
    { startedAtMs, ...fields }: { startedAtMs: number; outcome: string; [field: string]: unknown },
  ): void {
    const durationMs = Math.round((performance.now() - startedAtMs) * 10) / 10;
    this.#deps.metrics.join(fields.outcome, durationMs);
    this.#deps.logger.info('join', {
      connectionId: connection.id,
      ...connection.logFields,
      durationMs,
      ...fields,
    });
  }
}

function hashOf(secret: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(secret).digest());
}
