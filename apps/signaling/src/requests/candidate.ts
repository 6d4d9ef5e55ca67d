import { RequestFailure } from '../connections/request-failure.js';
import { ok } from './reply.js';
import type { Handler } from './request.js';

export const candidate: Handler<'candidate'> = async ({ connection, session }, message) => {
  const isTaken = await session.media.candidate(message);
  // A late candidate is no client error: it was in flight while the peer connection was dropped.
  if (!isTaken && message.id !== undefined) throw new RequestFailure('conflict');
  ok(connection, message);
};
