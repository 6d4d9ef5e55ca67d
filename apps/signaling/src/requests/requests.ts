import { boundMessage, metadataSizeFailure, peerSubject, storedJsonBytes, type Permission } from '@callplane/core';
import { isDatabaseUnavailable } from '@callplane/db';
import { PROTOCOL_LIMITS, type ClientMessage, type ClientMessages } from '@callplane/protocol';
import type { Logger } from '@callplane/runtime';
import { iceServersFor, type ArrivalDeps, type WelcomeDeps } from '../arrivals/arrival.js';
import { join } from '../arrivals/join.js';
import { resume } from '../arrivals/resume.js';
import type { Connection, ConnectionHandler } from '../connections/connection.js';
import type { InvalidMessage } from '../connections/frames.js';
import { errorMessage, logRefusal, RequestFailure } from '../connections/request-failure.js';
import type { Ending, SignalingMetrics } from '../metrics.js';
import type { Rooms } from '../rooms/rooms.js';
import { pageText, withParticipants } from '../rooms/state.js';
import type { Qualities } from '../sessions/quality-seconds.js';
import type { Session } from '../sessions/session.js';
import type { Writes } from '../writes/writes.js';

interface RequestDeps extends WelcomeDeps {
  qualities: Qualities;
  rooms: Rooms;
  writes: Writes;
}

interface RequestContext {
  deps: RequestDeps;
  connection: Connection;
  session: Session;
}

type RequestType = Exclude<keyof ClientMessages, 'join' | 'resume'>;

/** The next request waits for a promise. @throws RequestFailure if the request is refused */
type Handler<T extends RequestType> = (context: RequestContext, message: ClientMessages[T]) => void | Promise<void>;

function acknowledged<T extends RequestType>(
  work: (session: Session, message: ClientMessages[T]) => void | Promise<void>,
): Handler<T> {
  return ({ connection, session }, message) => {
    const working = work(session, message);
    if (working === undefined) ok(connection, message);
    else return working.then(() => ok(connection, message));
  };
}

const ROSTER_LIMIT_DEFAULT = 50;
const MESSAGE_BYTES_MAX = PROTOCOL_LIMITS.messageBytesMax;

const HANDLERS: { [T in RequestType]: Handler<T> } = {
  async publish({ connection, session }, message) {
    const sdp = await session.media.publish(message);
    connection.send({ type: 'published', ...replyTo(message), sdp });
  },
  unpublish: acknowledged((session) => session.media.unpublish()),
  mute: acknowledged((session, { trackId, muted }) => session.media.publisher.mute(trackId, muted)),
  subscribe: acknowledged((session, { tracks }) => session.media.subscriber.subscribe(tracks)),
  unsubscribe: acknowledged((session, { tracks }) => session.media.subscriber.unsubscribe(tracks)),
  answer: acknowledged((session, { offerId, sdp }) => session.media.subscriber.answer(offerId, sdp)),
  async candidate({ connection, session }, message) {
    const isTaken = await session.media.candidate(message);
    // A late candidate is no client error: it was in flight while the peer connection was dropped.
    if (!isTaken && message.id !== undefined) throw new RequestFailure('conflict');
    ok(connection, message);
  },
  resetMedia: acknowledged((session, { targets }) => session.media.reset(targets)),
  /** The offer follows, at once or after the client's answer to an earlier one. */
  restartIce: acknowledged((session) => {
    if (!session.restartBucket.take(performance.now())) throw new RequestFailure('rate_limited');
    session.media.subscriber.restart();
  }),
  refreshVideo: acknowledged((session, { targets }) => {
    if (!session.refreshBucket.take(performance.now())) throw new RequestFailure('rate_limited');
    session.media.refreshVideo(targets);
  }),
  message: sendMessage,
  async metadata({ connection, deps, session }, message) {
    requirePermission(session, 'metadata:update');
    if (!connection.metadataBucket.take(performance.now())) throw new RequestFailure('rate_limited');
    const failure = metadataSizeFailure(storedJsonBytes(message.metadata));
    if (failure !== null) throw tooLarge('metadata', failure);
    const change = { held: session.held, metadata: message.metadata };
    const isWritten = await deps.writes.metadata(session.roomId, change);
    if (!isWritten) throw new RequestFailure('conflict', 'The session has ended.');
    ok(connection, message);
  },
  roster({ connection, session }, message) {
    const page = session.room.roster.page(message.cursor ?? null, message.limit ?? ROSTER_LIMIT_DEFAULT);
    connection.sendText(pageText({ type: 'roster', ...replyTo(message) }, page));
  },
  show({ connection, session }, message) {
    const participants = session.room.shown.show(session, message.participantIds, message.publishers ?? true);
    connection.sendText(withParticipants({ type: 'shown', ...replyTo(message) }, participants));
    session.room.quality.welcome(session);
  },
  /** The others learn of the level within a second, and the seconds in each level become a part of the record. */
  quality({ connection, deps, session }, message) {
    if (!session.qualityBucket.take(performance.now())) throw new RequestFailure('rate_limited');
    deps.qualities.report(session.sessionId, message.level, message.relay ?? false);
    session.room.quality.note(session.participantId, message.level);
    ok(connection, message);
  },
  iceServers({ connection, deps, session: { sessionId } }, message) {
    const subject = message.target === undefined ? sessionId : peerSubject(sessionId, message.target);
    connection.send({ type: 'iceServers', ...replyTo(message), ...iceServersFor(deps, subject) });
  },
  ping: ({ connection }, message) => connection.send({ type: 'pong', ...replyTo(message) }),
  leave: ({ session }) => session.leave(),
};

export interface DispatchDeps extends RequestDeps, ArrivalDeps {
  logger: Logger;
  metrics: Pick<SignalingMetrics, 'ended' | 'join' | 'message' | 'refused'>;
}

export class Dispatch implements ConnectionHandler {
  readonly #deps: DispatchDeps;

  constructor(deps: DispatchDeps) {
    this.#deps = deps;
  }

  onMessage(connection: Connection, message: ClientMessage): void | Promise<void> {
    this.#deps.metrics.message(message.type);
    try {
      return this.#handle(connection, message)?.catch((error: unknown) => this.#onError(connection, message, error));
    } catch (error) {
      this.#onError(connection, message, error);
    }
  }

  onInvalid(connection: Connection, { type, details }: InvalidMessage): void {
    this.#deps.metrics.refused('invalid_message');
    logRefusal(this.#deps.logger, connection, { type, code: 'invalid_message', details });
  }

  onEnd(connection: Connection, ending: Ending): void {
    this.#deps.metrics.ended(ending);
    this.#deps.sessions.onConnectionEnd(connection, ending);
  }

  #handle(connection: Connection, message: ClientMessage): void | Promise<void> {
    const { arrivals, sessions } = this.#deps;
    const session = sessions.of(connection);
    if (message.type === 'join' || message.type === 'resume') {
      if (session !== undefined) throw new RequestFailure('conflict', 'The connection already has a session.');
      return message.type === 'join'
        ? arrivals.track(connection, null, () => join(this.#deps, connection, message))
        : arrivals.track(connection, message.sessionId, () => resume(this.#deps, connection, message));
    }
    // The client has given up its join, and nothing was written.
    if (session === undefined && message.type === 'leave') connection.close('left', { cause: 'The client left.' });
    else if (session?.isConnected !== true) throw new RequestFailure('conflict', 'The session has ended.');
    else return (HANDLERS[message.type] as Handler<RequestType>)({ deps: this.#deps, connection, session }, message);
  }

  #onError(connection: Connection, message: ClientMessage, error: unknown): void {
    const { logger } = this.#deps;
    const { type, id } = message;
    if (error instanceof RequestFailure) {
      const { code, details, cause } = error;
      this.#deps.metrics.refused(code);
      logRefusal(logger, connection, { type, code, answer: boundMessage(error.message), details, cause });
      connection.send(errorMessage(id, code, error.message, details));
      return;
    }
    const isUnavailable = isDatabaseUnavailable(error);
    const fields = { connectionId: connection.id, sessionId: connection.logFields['sessionId'], type, error };
    if (isUnavailable) logger.warn('request failed', fields);
    else logger.error('request failed', fields);
    if (type === 'join' || type === 'resume') {
      connection.close('unavailable', { cause: isUnavailable ? 'PostgreSQL is unavailable.' : 'Internal error.' });
      return;
    }
    const text = isUnavailable ? 'A dependency is unavailable. Try again.' : 'The request failed. Try again.';
    connection.send(errorMessage(id, 'unavailable', text));
  }
}

/** Runs without a promise unless another instance holds recipients. */
function sendMessage(context: RequestContext, request: ClientMessages['message']): void | Promise<void> {
  const { connection, deps, session } = context;
  requirePermission(session, 'messages:send');
  if (!connection.messagesBucket.take(performance.now())) throw new RequestFailure('rate_limited');
  const data = JSON.stringify(request.data);
  const bytes = Buffer.byteLength(data);
  if (bytes > MESSAGE_BYTES_MAX) throw tooLarge('data', `must be at most ${MESSAGE_BYTES_MAX} bytes, not ${bytes}`);
  const { room } = session;
  const absent = request.to?.filter((id) => room.sessions.entryOf(id) === undefined);
  if (absent !== undefined && absent.length > 0) {
    throw new RequestFailure(
      'not_found',
      'Some recipients are not in the room. The message was not delivered.',
      absent.map((id) => ({ path: 'to', message: `${id} is not in the room` })),
    );
  }
  const sentAt = timestampOf(deps.clock.now());
  const passed = deps.rooms.pass(room, session.participantId, request.to ?? null, data, sentAt);
  if (typeof passed === 'boolean') acknowledge(context, request, passed);
  else return passed.then((isPassed) => acknowledge(context, request, isPassed));
}

/** The text of the latest millisecond. Formatting it takes 0.8 µs (measured), and many messages share it. */
let latest = { atMs: NaN, text: '' };

function timestampOf(now: Date): string {
  const atMs = now.getTime();
  if (atMs !== latest.atMs) latest = { atMs, text: now.toISOString() };
  return latest.text;
}

function acknowledge({ connection }: RequestContext, request: ClientMessage, isPassed: boolean): void {
  if (!isPassed) throw new RequestFailure('unavailable', 'The message could not be delivered to all recipients.');
  ok(connection, request);
}

function ok(connection: Connection, message: ClientMessage): void {
  if (message.id !== undefined) connection.send({ type: 'ok', replyTo: message.id });
}

/** The field with which an answer names its request; none if the client gave it no id. */
function replyTo({ id }: ClientMessage): { replyTo?: string } {
  return id === undefined ? {} : { replyTo: id };
}

function requirePermission(session: Session, permission: Permission): void {
  if (session.permissions.includes(permission)) return;
  throw new RequestFailure('permission_denied', `The participant lacks the permission ${permission}.`);
}

function tooLarge(path: string, message: string): RequestFailure {
  return new RequestFailure('payload_too_large', undefined, [{ path, message }]);
}
