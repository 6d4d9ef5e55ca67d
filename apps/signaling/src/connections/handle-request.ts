import { updateOwnMetadata } from '@callplane/db';
import { PROTOCOL_LIMITS, type ClientMessage, type ClientMessages } from '@callplane/protocol';
import type { Permission } from '@callplane/core';
import type { Deps } from '../deps.js';
import type { LiveSession } from '../sessions/live-session.js';
import type { Sessions } from '../sessions/sessions.js';
import type { Connection } from './connection.js';
import { RequestFailure } from './request-failure.js';

type RequestDeps = Pick<Deps, 'clock' | 'database'>;

/**
 * Carries out what a client asks within its session.
 * @throws RequestFailure what is refused.
 */
export async function handleRequest(
  deps: RequestDeps,
  sessions: Sessions,
  connection: Connection,
  session: LiveSession,
  message: ClientMessage,
): Promise<void> {
  const { media } = session;
  switch (message.type) {
    case 'join':
    case 'resume':
      throw new RequestFailure('conflict', 'This connection has its session already.');
    case 'publish':
      // Answers by itself, with the media server's description.
      return media.publish(message);
    case 'unpublish':
      await media.unpublish();
      {
        ok(connection, message);
        return;
      }
    case 'mute':
      await media.mute(message.trackId, message.muted);
      {
        ok(connection, message);
        return;
      }
    case 'subscribe':
      media.subscribe(message.tracks);
      {
        ok(connection, message);
        return;
      }
    case 'unsubscribe':
      media.unsubscribe(message.tracks);
      {
        ok(connection, message);
        return;
      }
    case 'answer':
      await media.answer(message.offerId, message.sdp);
      {
        ok(connection, message);
        return;
      }
    case 'candidate':
      // Late candidates are no mistake: they were under way while their connection was given up.
      if (!(await media.candidate(message)) && message.id !== undefined) throw new RequestFailure('conflict');
      {
        ok(connection, message);
        return;
      }
    case 'resetMedia':
      await media.reset(message.targets);
      {
        ok(connection, message);
        return;
      }
    case 'message':
      return sendMessage(deps, sessions, connection, session, message);
    case 'metadata':
      return updateMetadata(deps, sessions, connection, session, message);
    case 'iceServers':
      connection.send({ type: 'iceServers', ...replyTo(message), ...session.iceServers() });
      return;
    case 'ping':
      connection.send({ type: 'pong', ...replyTo(message) });
      return;
    case 'leave':
      return sessions.leave(session);
    default:
      throw new RequestFailure('invalid_message');
  }
}

async function sendMessage(
  { clock }: RequestDeps,
  { rooms }: Sessions,
  connection: Connection,
  session: LiveSession,
  message: ClientMessages['message'],
): Promise<void> {
  need(session, 'messages:send');
  if (!connection.messagesBucket.take(performance.now())) throw new RequestFailure('rate_limited');
  tooLarge('data', message.data, PROTOCOL_LIMITS.messageBytesMax);
  const absent = (message.to ?? []).filter((id) => session.view.sessionOf(id) === undefined);
  if (absent.length > 0) {
    throw new RequestFailure(
      'not_found',
      'There is no such participant in the room; nobody got the message.',
      absent.slice(0, 20).map((id) => ({ path: 'to', message: `${id} is not in the room` })),
    );
  }
  const sentAt = clock.now().toISOString();
  const reached = await rooms.pass(session.view, session.participantId, message.to ?? null, message.data, sentAt);
  if (!reached) throw new RequestFailure('unavailable', 'Some of the others did not get the message.');
  ok(connection, message);
}

async function updateMetadata(
  { database }: RequestDeps,
  { rooms }: Sessions,
  connection: Connection,
  session: LiveSession,
  message: ClientMessages['metadata'],
): Promise<void> {
  need(session, 'metadata:update');
  if (!connection.metadataBucket.take(performance.now())) throw new RequestFailure('rate_limited');
  tooLarge('metadata', message.metadata, PROTOCOL_LIMITS.metadataBytesMax);
  const written = await updateOwnMetadata(database, session.held, message.metadata);
  void rooms.changed(session.roomId, false);
  // The view, which is read again, finds out what became of the session.
  if (!written) throw new RequestFailure('conflict', 'The session has ended.');
  ok(connection, message);
}

function need(session: LiveSession, permission: Permission): void {
  if (session.permissions.includes(permission)) return;
  throw new RequestFailure('permission_denied', `The token does not permit this: it needs ${permission}.`);
}

function tooLarge(path: string, value: unknown, bytesMax: number): void {
  if (Buffer.byteLength(JSON.stringify(value)) <= bytesMax) return;
  throw new RequestFailure('payload_too_large', undefined, [{ path, message: `must have at most ${bytesMax} bytes` }]);
}

/** Says that a request was carried out, to whoever gave it an id to be told by. */
function ok(connection: Connection, message: ClientMessage): void {
  if (message.id !== undefined) connection.send({ type: 'ok', replyTo: message.id });
}

export function replyTo({ id }: ClientMessage): { replyTo?: string } {
  return id === undefined ? {} : { replyTo: id };
}
