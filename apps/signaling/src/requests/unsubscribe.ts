import { ok } from './reply.js';
import type { Handler } from './request.js';

export const unsubscribe: Handler<'unsubscribe'> = ({ connection, session }, message) => {
  session.media.unsubscribe(message.tracks);
  ok(connection, message);
};
