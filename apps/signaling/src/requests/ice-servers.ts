import { iceServersFor } from '../sessions/welcome.js';
import { replyTo } from './reply.js';
import type { Handler } from './request.js';

export const iceServers: Handler<'iceServers'> = ({ connection, deps, session }, message) => {
  connection.send({ type: 'iceServers', ...replyTo(message), ...iceServersFor(deps, session.sessionId) });
};
