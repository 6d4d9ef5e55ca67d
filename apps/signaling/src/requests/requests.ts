import { boundMessage, metadataSizeFailure, peerSubject, storedJsonBytes } from '@callplane/core';
import { isDatabaseUnavailable } from '@callplane/db';
import type { ClientMessage, ClientMessages } from '@callplane/protocol';
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
import type { Rooms } from '../rooms/rooms.js';
import { pageText, withParticipants } from '../rooms/state.js';
import type { Qualities } from '../sessions/quality-seconds.js';
import type { Session } from '../sessions/session.js';
import type { Writes } from '../writes/writes.js';
import { ok, passCredit, passing, passPart, requirePermission, send, tooLarge } from './passing.js';
import type { StreamRates } from './stream-rates.js';

interface RequestDeps extends WelcomeDeps {
  metrics: Pick<SignalingMetrics, 'partPassed'>;
  qualities: Qualities;
  rooms: Rooms;
  streamRates: StreamRates;
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
  stream: passing('stream'),
  part: passPart,
  credit: passCredit,
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
  metrics: Pick<SignalingMetrics, 'ended' | 'join' | 'message' | 'partPassed' | 'refused'>;
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

/** The field with which an answer names its request; none if the client gave it no id. */
function replyTo({ id }: ClientMessage): { replyTo?: string } {
  return id === undefined ? {} : { replyTo: id };
}
