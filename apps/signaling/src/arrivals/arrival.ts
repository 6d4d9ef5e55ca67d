import { setTimeout as delay } from 'node:timers/promises';
import { issueTurnCredentials, presentRoom, traceIdOf, type Clock, type TurnSettings } from '@callplane/core';
import type { Database, SessionState } from '@callplane/db';
import type { CloseReason, ServerMessages } from '@callplane/protocol';
import type { JobProducer } from '@callplane/queue';
import { startSpan, type Logger, type Span } from '@callplane/runtime';
import { DRAINS, type Client } from '../clients/client.js';
import type { MediaPlaces } from '../media/places.js';
import type { ArrivalLimit, SignalingMetrics } from '../metrics.js';
import { participantText } from '../rooms/changes.js';
import type { Rooms } from '../rooms/rooms.js';
import { withParticipants, type RoomInfo } from '../rooms/state.js';
import type { Session } from '../sessions/session.js';
import type { Sessions } from '../sessions/sessions.js';
import type { ClientState, NotWritten, Writes } from '../writes/writes.js';
import type { ArrivalLimits } from './limits.js';
import type { VerificationKeys } from './token.js';

/**
 * How long a drain waits for joins and resumptions in progress, in milliseconds. A client that ends before its welcome
 * joins at another instance, while this one may still commit its first join.
 */
const ARRIVE_WITHIN_MS = 3000;

export interface WelcomeDeps {
  clock: Clock;
  turn: TurnSettings;
  reconnectGraceSeconds: number;
  pingIntervalSeconds: number;
}

export interface WelcomeDetails {
  replyTo: string | undefined;
  resumed: boolean;
  resumeSecret: string;
  /** Called when the session enters the room. @returns whether a peer connection of the client still works */
  continueMedia: () => boolean;
  own: SessionState;
}

export interface ArrivalDeps extends WelcomeDeps {
  instanceId: string;
  arrivalLimits: ArrivalLimits;
  arrivals: Arrivals;
  database: Database;
  keys: VerificationKeys;
  logger: Logger;
  metrics: Pick<SignalingMetrics, 'join'>;
  places: MediaPlaces;
  producer: JobProducer;
  rooms: Rooms;
  sessions: Sessions;
  tokens: { issuer: string; audience: string };
  writes: Writes;
}

/** The joins and resumptions that are in progress at this instance. */
export class Arrivals {
  readonly #byClient = new Map<Client, Promise<void>>();
  /** Sessions whose resumption is in progress. Their rows may name this instance before it holds them. */
  readonly #resuming = new Set<string>();
  /** Whether the instance drains. It begins no join and no resumption then: another instance can handle it. */
  isDraining = false;

  has(client: Client): boolean {
    return this.#byClient.has(client);
  }

  isResuming(sessionId: string): boolean {
    return this.#resuming.has(sessionId);
  }

  /** @param sessionId the session that is resumed; null for a join */
  async track(client: Client, sessionId: string | null, work: () => Promise<void>): Promise<void> {
    if (sessionId !== null) this.#resuming.add(sessionId);
    const arriving = work();
    this.#byClient.set(client, arriving);
    try {
      await arriving;
    } finally {
      this.#byClient.delete(client);
      if (sessionId !== null) this.#resuming.delete(sessionId);
    }
  }

  async settled(): Promise<void> {
    const arrived = Promise.allSettled([...this.#byClient.values()]);
    await Promise.race([arrived, delay(ARRIVE_WITHIN_MS, undefined, { ref: false })]);
  }
}

/**
 * One join or resumption in progress. Two numbers order them. The `joinNumber` counts the joins of a participant: of two joins, the later one opens the
 * session. The `connectionNumber` counts the connections of one session, from its join (1) through its resumptions: only
 * the latest one may write.
 */
export class Arrival {
  readonly #startedAtMs = performance.now();
  readonly #span: Span | null = startSpan('arrival', { kind: 'server', parent: null });

  constructor(
    private readonly deps: ArrivalDeps,
    readonly client: Client,
    private readonly fields: object = {},
  ) {}

  /** The tenant for events that this arrival writes: their deliveries belong to its trace. */
  traced<T extends object>(tenant: T): T & { traceparent?: string } {
    return this.#span === null ? tenant : { ...tenant, traceparent: this.#span.traceparent };
  }

  /** Whether the client still waits for this instance. */
  readonly clientState = (): ClientState => {
    // Numbering a disconnected client would make its newer join at another instance look older.
    if (this.client.ending !== null) return 'disconnected';
    return this.deps.arrivals.isDraining ? 'drain' : 'waiting';
  };

  /** Nothing is written yet, so another instance can handle all of it. @returns whether the arrival was refused */
  refusedByDrain(): boolean {
    if (!this.deps.arrivals.isDraining) return false;
    this.refuse('drain', DRAINS);
    return true;
  }

  /** Refuses the arrival if it has to wait. @returns whether it was refused */
  refusedByLimit(limit: ArrivalLimit, waitMs: number): boolean {
    if (waitMs > 0) this.deps.arrivalLimits.refuse(this.client, limit, waitMs);
    return waitMs > 0;
  }

  /** @param id of the participant or session that the limit is for */
  decline(refusal: NotWritten | { outcome: 'too_many'; waitMs: number }, limit: ArrivalLimit, id: string): void {
    if (refusal.outcome === 'too_many') {
      this.deps.arrivalLimits.refuseFor(id, refusal.waitMs);
      this.refusedByLimit(limit, refusal.waitMs);
    } else if (refusal.outcome === 'drain') this.refuse('drain', DRAINS);
    else this.log('disconnected');
  }

  log(outcome: string, fields: object = {}): void {
    const span = this.#span;
    const trace = span === null ? {} : { traceId: traceIdOf(span.traceparent), spanId: span.spanId };
    const durationMs = Math.round((performance.now() - this.#startedAtMs) * 10) / 10;
    this.deps.metrics.join(outcome, durationMs);
    this.deps.logger.info('join', {
      connectionId: this.client.id,
      ...this.client.logFields,
      durationMs,
      outcome,
      ...trace,
      ...this.fields,
      ...fields,
    });
    if (span !== null) this.#end(span, outcome);
  }

  /** Refusals are answers, not failures of the gateway. */
  #end(span: Span, outcome: string): void {
    const fields = this.client.logFields;
    const attributes: Record<string, string> = { 'callplane.outcome': outcome };
    for (const name of ['environment', 'room', 'participant', 'session']) {
      const id = fields[`${name}Id`];
      if (typeof id === 'string') attributes[`callplane.${name}.id`] = id;
    }
    span.end({ attributes });
  }

  refuse(reason: CloseReason, cause: string): void {
    this.client.close(reason, { cause });
    this.log(reason, { cause });
  }

  /**
   * Sends the welcome, and makes the session a member of its room, so that every later change follows the welcome. The
   * room is loaded with the session in it. A session in the lobby gets its part of the welcome, and the rest when the
   * room shows that it was let in.
   */
  welcome(session: Session, details: WelcomeDetails): void {
    const { room } = session;
    // Since the commit, the session may have been removed, superseded, resumed elsewhere, or ended with its room.
    const departure = room.departureOf(session);
    if (departure !== null || room.state === null) {
      this.deps.sessions.onDeparture(session, departure ?? 'missing');
      this.log('ended');
      return;
    }
    if (room.isWaiting(session)) this.#hold(session, room.state, details);
    else this.#enter(session, room.state, details);
  }

  #hold(session: Session, info: RoomInfo, details: WelcomeDetails): void {
    const { room } = session;
    room.hold(session);
    session.hold(() => {
      if (room.state !== null) this.#enter(session, room.state, { ...details, replyTo: undefined });
    });
    this.client.sendWelcome(lobbyText(this.deps, session, info, details));
    this.log('waiting');
  }

  #enter(session: Session, info: RoomInfo, details: WelcomeDetails): void {
    const { room, isWaiting } = session;
    const mediaContinued = details.continueMedia();
    session.onOwn(room.sessionOf(session.participantId) ?? details.own);
    session.media.readPlacement();
    const text = welcomeText(this.deps, session, info, { ...details, mediaContinued });
    room.add(session);
    session.dispatch('welcomed');
    this.client.sendWelcome(text);
    const speakers = room.speakers.present();
    if (speakers !== null) session.sendText(speakers);
    if (session.isConnected) session.media.onWelcomed();
    room.quality.welcome(session);
    // The log line and the duration of this arrival are the ones of its first welcome.
    if (isWaiting) this.deps.logger.info('admitted', { connectionId: this.client.id, ...this.client.logFields });
    else if (details.resumed) this.log('resumed', { mediaContinued });
    else this.log('joined');
  }

  /** Whether this arrival still holds the session. If not, its client ends, and the reason is logged. */
  holds(session: Session, connectionNumber: number): boolean {
    if (session.connectionNumber !== connectionNumber) {
      this.client.drop();
      this.log('overtaken');
      return false;
    }
    if (!session.isGone && this.client.ending === null) return true;
    this.log(session.isGone ? 'ended' : 'disconnected');
    return false;
  }
}

export function iceServersFor(
  { turn, clock }: Pick<WelcomeDeps, 'turn' | 'clock'>,
  subject: string,
): Pick<ServerMessages['iceServers'], 'iceServers' | 'iceServersExpireAt' | 'iceServersTtlSeconds'> {
  const { iceServers, expiresAt, ttlSeconds } = issueTurnCredentials(turn, subject, clock.now());
  return { iceServers, iceServersExpireAt: expiresAt.toISOString(), iceServersTtlSeconds: ttlSeconds };
}

/** The welcome of a client in the lobby: nothing of the others, and no way to send or receive. */
function lobbyText(deps: WelcomeDeps, { room, sessionId }: Session, info: RoomInfo, details: WelcomeDetails): string {
  const { id, name, encryption } = info.room;
  const waiting = room.sessions.waiting.get(sessionId)?.state ?? details.own;
  const message = {
    type: 'welcome',
    ...(details.replyTo === undefined ? {} : { replyTo: details.replyTo }),
    waiting: true,
    resumed: details.resumed,
    sessionId,
    resumeSecret: details.resumeSecret,
    reconnectGraceSeconds: deps.reconnectGraceSeconds,
    room: { id, name, metadata: {}, encryption, recordingSince: null },
    permissions: [],
    iceServers: [],
    iceServersExpireAt: deps.clock.now().toISOString(),
    iceServersTtlSeconds: 0,
    media: { state: 'down', continued: false },
    pingIntervalSeconds: deps.pingIntervalSeconds,
    roster: { paged: false, next: null, participantCount: room.roster.counts.participantCount, viewerCount: 0 },
  };
  return `${withParticipants(message, []).slice(0, -1)},"participant":${participantText(waiting)}}`;
}

function welcomeText(
  deps: WelcomeDeps,
  session: Session,
  info: RoomInfo,
  details: WelcomeDetails & { mediaContinued: boolean },
): string {
  const { room, sessionId, participantId, permissions, media } = session;
  const { replyTo, resumed, resumeSecret, mediaContinued } = details;
  const own = participantText(room.sessionOf(participantId) ?? details.own);
  const { participants, ...page } = room.firstPage();
  const message = {
    type: 'welcome',
    ...(replyTo === undefined ? {} : { replyTo }),
    resumed,
    sessionId,
    resumeSecret,
    reconnectGraceSeconds: deps.reconnectGraceSeconds,
    room: presentRoom(info.tenant, info.room),
    permissions,
    ...iceServersFor(deps, sessionId),
    media: { state: media.state, continued: mediaContinued },
    pingIntervalSeconds: deps.pingIntervalSeconds,
    roster: { paged: info.rosterPaged, ...page },
  };
  const others = participants.filter((text) => text !== own);
  return `${withParticipants(message, others).slice(0, -1)},"participant":${own}}`;
}
