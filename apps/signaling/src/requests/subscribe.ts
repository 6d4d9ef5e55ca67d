import { ok } from './reply.js';
import type { Handler } from './request.js';

export const subscribe: Handler<'subscribe'> = ({ connection, session }, message) => {
  session.media.subscribe(message.tracks);
  ok(connection, message);
};
