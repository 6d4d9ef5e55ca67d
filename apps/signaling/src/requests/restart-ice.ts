import { ok } from './reply.js';
import type { Handler } from './request.js';

/** The offer follows, at once or after the client's answer to an earlier one. */
export const restartIce: Handler<'restartIce'> = ({ connection, session }, message) => {
  session.media.paths.restartIce();
  ok(connection, message);
};
