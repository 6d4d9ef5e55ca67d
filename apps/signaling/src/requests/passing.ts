import { SERVER_SENDER, type Clock, type Permission } from '@callplane/core';
import { PROTOCOL_LIMITS, type ClientMessage, type ClientMessages, type ServerMessage } from '@callplane/protocol';
import { RequestFailure, type Client } from '../clients/client.js';
import type { SignalingMetrics } from '../metrics.js';
import type { Room } from '../rooms/room.js';
import type { Rooms } from '../rooms/rooms.js';
import type { Session } from '../sessions/session.js';
import type { StreamRates } from './stream-rates.js';

interface PassingContext {
  deps: { clock: Clock; metrics: Pick<SignalingMetrics, 'partPassed'>; rooms: Rooms; streamRates: StreamRates };
  client: Client;
  session: Session;
}

type Passing<T extends keyof ClientMessages> = (
  context: PassingContext,
  request: ClientMessages[T],
) => void | Promise<void>;

const MESSAGE_BYTES_MAX = PROTOCOL_LIMITS.messageBytesMax;
/** How long the answer to a part waits at most. */
const PAUSE_MS_MAX = 5000;

type Passed = 'message' | 'ask' | 'reply' | 'stream';

/** The fields of a message that others get, except `sentAt`. Ids, methods and failures need no escaping. */
const FIELDS: { [T in Passed]: (message: ClientMessages[T], body: string) => string } = {
  message: (_, data) => `"data":${data}`,
  ask: ({ askId, method }, payload) => `"askId":"${askId}","method":"${method}","payload":${payload}`,
  stream: ({ streamId, method }, payload) => `"streamId":"${streamId}","method":"${method}","payload":${payload}`,
  reply: ({ askId, failure }, payload) =>
    `"askId":"${askId}","payload":${payload}${failure === undefined ? '' : `,"failure":"${failure}"`}`,
};

/** Passes a message on to others. Runs without a promise unless another instance holds recipients. */
export function passing<T extends Passed>(type: T): Passing<T> {
  return (context, request) => {
    const { deps, session } = context;
    const isToServer = request.type === 'reply' && request.to === SERVER_SENDER;
    if (!isToServer) requirePermission(session, 'messages:send');
    if (!session.limits.messages.take(performance.now())) throw new RequestFailure('rate_limited');
    const [path, value] = request.type === 'message' ? ['data', request.data] : ['payload', request.payload];
    const body = JSON.stringify(value);
    assertSize(path, Buffer.byteLength(body));
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

/**
 * Passes a part of a stream on. Its sender waits for the answer, which comes only once half of the burst of its
 * connection is left to other messages: a stream uses up neither the rate of its connection nor the patience of others.
 */
export const passPart: Passing<'part'> = (context, request) => {
  const { streamId, offset, data, last = false, aborted = false } = request;
  const { session, deps } = context;
  if (!aborted || data !== '') requirePermission(session, 'messages:send');
  assertSize('data', data.length);
  const bytes = request.to.length * data.length;
  if (bytes > 0 && !deps.streamRates.take(session.room, bytes)) throw new RequestFailure('rate_limited');
  deps.metrics.partPassed(bytes);
  const ends = `${last ? ',"last":true' : ''}${aborted ? ',"aborted":true' : ''}`;
  // Base64 needs no escaping.
  return passPaced(context, request, `"streamId":"${streamId}","offset":${offset},"data":"${data}"${ends}`);
};

export const passCredit: Passing<'credit'> = (context, request) => {
  const { type: _, id: _id, to: _to, ...fields } = request;
  return passPaced(context, request, JSON.stringify(fields).slice(1, -1));
};

function passPaced(
  context: PassingContext,
  request: ClientMessages['part' | 'credit'],
  fields: string,
): void | Promise<void> {
  const { client, deps, session } = context;
  const { room, participantId: from } = session;
  const to = typeof request.to === 'string' ? [request.to] : request.to;
  assertPresent(room, to);
  const passed = deps.rooms.pass(room, { from, to, text: `{"type":"${request.type}","from":"${from}",${fields}}` });
  const answer = (isPassed: boolean): void => {
    const pauseMs = Math.min(client.pauseMs, PAUSE_MS_MAX);
    if (!isPassed || pauseMs === 0) acknowledge(context, request, isPassed);
    else setTimeout(() => ok(client, request), pauseMs);
  };
  if (typeof passed === 'boolean') answer(passed);
  else return passed.then(answer);
}

function assertSize(path: string, bytes: number): void {
  if (bytes > MESSAGE_BYTES_MAX) throw tooLarge(path, `must be at most ${MESSAGE_BYTES_MAX} bytes, not ${bytes}`);
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

function acknowledge({ client }: PassingContext, request: ClientMessage, isPassed: boolean): void {
  if (!isPassed) throw new RequestFailure('unavailable', 'The message could not be delivered to all recipients.');
  ok(client, request);
}

export function ok(client: Client, message: ClientMessage): void {
  if (message.id !== undefined) send(client, { type: 'ok', replyTo: message.id });
}

export function send(client: Client, message: ServerMessage): void {
  client.sendText(JSON.stringify(message));
}

export function requirePermission(session: Session, permission: Permission): void {
  if (session.permissions.includes(permission)) return;
  throw new RequestFailure('permission_denied', `The participant lacks the permission ${permission}.`);
}

export function tooLarge(path: string, message: string): RequestFailure {
  return new RequestFailure('payload_too_large', undefined, [{ path, message }]);
}
