import { PROTOCOL_LIMITS, type ClientMessages } from '@callplane/protocol';
import { RequestFailure } from '../connections/request-failure.js';
import { ok, requirePermission, tooLarge } from './reply.js';
import type { Handler, RequestContext } from './request.js';

type Message = ClientMessages['message'];

const BYTES_MAX = PROTOCOL_LIMITS.messageBytesMax;

/** Runs without a promise unless another instance holds recipients. */
export const message: Handler<'message'> = (context, request) => {
  const { connection, deps, session } = context;
  requirePermission(session, 'messages:send');
  if (!connection.messagesBucket.take(performance.now())) throw new RequestFailure('rate_limited');
  const data = JSON.stringify(request.data);
  const bytes = Buffer.byteLength(data);
  if (bytes > BYTES_MAX) throw tooLarge('data', `must be at most ${BYTES_MAX} bytes, not ${bytes}`);
  const { room } = session;
  const absent = request.to?.filter((id) => !room.isInRoom(id));
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
};

/** The text of the latest millisecond. Formatting it takes 0.8 µs (measured), and many messages share it. */
let latest = { atMs: NaN, text: '' };

function timestampOf(now: Date): string {
  const atMs = now.getTime();
  if (atMs !== latest.atMs) latest = { atMs, text: now.toISOString() };
  return latest.text;
}

function acknowledge({ connection }: RequestContext, request: Message, isPassed: boolean): void {
  if (!isPassed) throw new RequestFailure('unavailable', 'The message could not be delivered to all recipients.');
  ok(connection, request);
}
