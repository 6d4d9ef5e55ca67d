import {
  boundMessage,
  metadataSizeFailure,
  peerSubject,
  type Permission,
  SERVER_SENDER,
  storedJsonBytes,
} from '@callplane/core';
import { isDatabaseUnavailable } from '@callplane/db';
import { PROTOCOL_LIMITS, type ClientMessage, type ClientMessages, type ServerMessage } from '@callplane/protocol';
import type { Logger } from '@callplane/runtime';
import { iceServersFor, type ArrivalDeps, type WelcomeDeps } from '../arrivals/arrival.js';
import { join } from '../arrivals/join.js';
import { resume } from '../arrivals/resume.js';
import { testLine } from '../arrivals/line-test.js';
import {
  type Client,
  type ClientHandler,
  type Ending,
  type InvalidMessage,
  errorMessage,
  logRefusal,
  RequestFailure,
} from '../clients/client.js';
import { isFirstMessage } from '../clients/first-message.js';
import type { SignalingMetrics } from '../metrics.js';
import type { Room } from '../rooms/room.js';
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
  client: Client;
  session: Session;
}

type RequestType = Exclude<keyof ClientMessages, 'join' | 'resume' | 'test'>;

/** The next request waits for a promise. @throws RequestFailure if the request is refused */
type Handler<T extends RequestType> = (context: RequestContext, message: ClientMessages[T]) => void | Promise<void>;

function acknowledged<T extends RequestType>(
  work: (session: Session, message: ClientMessages[T]) => void | Promise<void>,
): Handler<T> {
  return ({ client, session }, message) => {
    const working = work(session, message);
    if (working === undefined) ok(client, message);
    else return working.then(() => ok(client, message));
  };
}

const ROSTER_LIMIT_DEFAULT = 50;
const MESSAGE_BYTES_MAX = PROTOCOL_LIMITS.messageBytesMax;

const HANDLERS: { [T in RequestType]: Handler<T> } = {
  async publish({ client, session }, message) {
    const sdp = await session.media.publish(message);
    send(client, { type: 'published', ...replyTo(message), sdp });
  },
  unpublish: acknowledged((session) => session.media.unpublish()),
  mute: acknowledged((session, { trackId, muted }) => session.media.publisher.mute(trackId, muted)),
  subscribe: acknowledged((session, { tracks }) => session.media.subscriber.subscribe(tracks)),
  unsubscribe: acknowledged((session, { tracks }) => session.media.subscriber.unsubscribe(tracks)),
  answer: acknowledged((session, { offerId, sdp }) => session.media.subscriber.answer(offerId, sdp)),
  async candidate({ client, session }, message) {
    const isTaken = await session.media.candidate(message);
    // A late candidate is no client error: it was in flight while the peer connection was dropped.
    if (!isTaken && message.id !== undefined) throw new RequestFailure('conflict');
    ok(client, message);
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
  message: passing('message'),
  ask: passing('ask'),
  reply: passing('reply'),
  async metadata({ client, deps, session }, message) {
    requirePermission(session, 'metadata:update');
    if (!session.limits.metadata.take(performance.now())) throw new RequestFailure('rate_limited');
    const failure = metadataSizeFailure(storedJsonBytes(message.metadata));
    if (failure !== null) throw tooLarge('metadata', failure);
    const change = { held: session.held, metadata: message.metadata };
    const isWritten = await deps.writes.metadata(session.roomId, change);
    if (!isWritten) throw new RequestFailure('conflict', 'The session has ended.');
    ok(client, message);
  },
  roster({ client, session }, message) {
    const page = session.room.roster.page(message.cursor ?? null, message.limit ?? ROSTER_LIMIT_DEFAULT);
    client.sendText(pageText({ type: 'roster', ...replyTo(message) }, page));
  },
  show({ client, session }, message) {
    const participants = session.room.shown.show(session, message.participantIds, message.publishers ?? true);
    client.sendText(withParticipants({ type: 'shown', ...replyTo(message) }, participants));
    session.room.quality.welcome(session);
  },
  /** The others learn of the level within a second, and the seconds in each level become a part of the record. */
  quality({ client, deps, session }, message) {
    if (!session.qualityBucket.take(performance.now())) throw new RequestFailure('rate_limited');
    deps.qualities.report(session.sessionId, message.level, message.relay ?? false);
    session.room.quality.note(session.participantId, message.level);
    ok(client, message);
  },
  iceServers({ client, deps, session: { sessionId } }, message) {
    const subject = message.target === undefined ? sessionId : peerSubject(sessionId, message.target);
    send(client, { type: 'iceServers', ...replyTo(message), ...iceServersFor(deps, subject) });
  },
  ping: ({ client }, message) => send(client, { type: 'pong', ...replyTo(message) }),
  leave: ({ session }) => session.leave(),
};

/** The requests of a client in the lobby. Every other one is refused. */
const IN_LOBBY: ReadonlySet<string> = new Set<RequestType>(['ping', 'leave']);

export interface DispatchDeps extends RequestDeps, ArrivalDeps {
  logger: Logger;
  metrics: Pick<SignalingMetrics, 'ended' | 'join' | 'message' | 'refused'>;
}

export class Dispatch implements ClientHandler {
  constructor(private readonly deps: DispatchDeps) {}

  onMessage(client: Client, message: ClientMessage): void | Promise<void> {
    this.deps.metrics.message(message.type);
    try {
      return this.#handle(client, message)?.catch((error: unknown) => this.#onError(client, message, error));
    } catch (error) {
      this.#onError(client, message, error);
    }
  }

  onInvalid(client: Client, { type, id, details }: InvalidMessage): void {
    send(client, errorMessage(id, 'invalid_message', 'The message does not match its schema.', details));
    this.deps.metrics.refused('invalid_message');
    logRefusal(this.deps.logger, client, { type, code: 'invalid_message', details });
  }

  onEnd(client: Client, ending: Ending): void {
    this.deps.metrics.ended(ending);
    this.deps.sessions.onClientEnd(client, ending);
  }

  #handle(client: Client, message: ClientMessage): void | Promise<void> {
    const { arrivals, sessions } = this.deps;
    const session = sessions.of(client);
    if (isFirstMessage(message)) {
      if (session !== undefined) throw new RequestFailure('conflict', 'The connection already has a session.');
      if (message.type === 'resume')
        return arrivals.track(client, message.sessionId, () => resume(this.deps, client, message));
      const arrive = () =>
        message.type === 'join' ? join(this.deps, client, message) : testLine(this.deps, client, message);
      return arrivals.track(client, null, arrive);
    }
    // The client has given up its join, and nothing was written.
    if (session === undefined && message.type === 'leave') client.close('left', { cause: 'The client left.' });
    else if (session?.isWaiting === true && !IN_LOBBY.has(message.type)) throw new RequestFailure('not_admitted');
    else if (session?.isConnected !== true && session?.isWaiting !== true)
      throw new RequestFailure('conflict', 'The session has ended.');
    else return (HANDLERS[message.type] as Handler<RequestType>)({ deps: this.deps, client, session }, message);
  }

  #onError(client: Client, message: ClientMessage, error: unknown): void {
    const { logger } = this.deps;
    const { type, id } = message;
    if (error instanceof RequestFailure) {
      const { code, details, cause } = error;
      this.deps.metrics.refused(code);
      logRefusal(logger, client, { type, code, answer: boundMessage(error.message), details, cause });
      send(client, errorMessage(id, code, error.message, details));
      return;
    }
    const isUnavailable = isDatabaseUnavailable(error);
    const fields = { connectionId: client.id, sessionId: client.logFields['sessionId'], type, error };
    if (isUnavailable) logger.warn('request failed', fields);
    else logger.error('request failed', fields);
    if (isFirstMessage(message)) {
      client.close('unavailable', { cause: isUnavailable ? 'PostgreSQL is unavailable.' : 'Internal error.' });
      return;
    }
    const text = isUnavailable ? 'A dependency is unavailable. Try again.' : 'The request failed. Try again.';
    send(client, errorMessage(id, 'unavailable', text));
  }
}

type Passed = 'message' | 'ask' | 'reply';

/** The fields of a message that others get, except `sentAt`. Ids, methods and failures need no escaping. */
const FIELDS: { [T in Passed]: (message: ClientMessages[T], body: string) => string } = {
  message: (_, data) => `"data":${data}`,
  ask: ({ askId, method }, payload) => `"askId":"${askId}","method":"${method}","payload":${payload}`,
  reply: ({ askId, failure }, payload) =>
    `"askId":"${askId}","payload":${payload}${failure === undefined ? '' : `,"failure":"${failure}"`}`,
};

/** Passes a message on to others. Runs without a promise unless another instance holds recipients. */
function passing<T extends Passed>(type: T): Handler<T> {
  return (context, request) => {
    const { deps, session } = context;
    const isToServer = request.type === 'reply' && request.to === SERVER_SENDER;
    if (!isToServer) requirePermission(session, 'messages:send');
    if (!session.limits.messages.take(performance.now())) throw new RequestFailure('rate_limited');
    const [path, value] = request.type === 'message' ? ['data', request.data] : ['payload', request.payload];
    const body = JSON.stringify(value);
    const bytes = Buffer.byteLength(body);
    if (bytes > MESSAGE_BYTES_MAX) throw tooLarge(path, `must be at most ${MESSAGE_BYTES_MAX} bytes, not ${bytes}`);
    const { room, participantId: from } = session;
    const to = typeof request.to === 'string' ? [request.to] : (request.to ?? null);
    if (!isToServer) assertPresent(room, to);
    // Not serialised a second time.
    const text = `{"type":"${type}","from":"${from}",${FIELDS[type](request, body)},"sentAt":"${deps.clock.now().toISOString()}"}`;
    const passed = isToServer
      ? deps.rooms.reply(request.askId, { from, to: [], text })
      : deps.rooms.pass(room, { from, to, text });
    if (passed === null) throw new RequestFailure('not_found', 'The server does not wait for this reply.');
    if (typeof passed === 'boolean') acknowledge(context, request, passed);
    else return passed.then((isPassed) => acknowledge(context, request, isPassed));
  };
}

function assertPresent(room: Room, to: readonly string[] | null): void {
  const absent = to?.filter((id) => room.sessions.entryOf(id) === undefined) ?? [];
  if (absent.length === 0) return;
  throw new RequestFailure(
    'not_found',
    'Some recipients are not in the room. The message was not delivered.',
    absent.map((id) => ({ path: 'to', message: `${id} is not in the room` })),
  );
}

function acknowledge({ client }: RequestContext, request: ClientMessage, isPassed: boolean): void {
  if (!isPassed) throw new RequestFailure('unavailable', 'The message could not be delivered to all recipients.');
  ok(client, request);
}

function ok(client: Client, message: ClientMessage): void {
  if (message.id !== undefined) send(client, { type: 'ok', replyTo: message.id });
}

function send(client: Client, message: ServerMessage): void {
  client.sendText(JSON.stringify(message));
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
