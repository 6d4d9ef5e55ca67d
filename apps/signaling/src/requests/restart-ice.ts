import { RequestFailure } from '../connections/request-failure.js';
import { ok } from './reply.js';
import type { Handler } from './request.js';

/** The offer follows, at once or after the client's answer to an earlier one. */
export const restartIce: Handler<'restartIce'> = ({ connection, session }, message) => {
  if (!session.restartBucket.take(performance.now())) throw new RequestFailure('rate_limited');
  session.media.restartIce();
  ok(connection, message);
};
