import { replyTo } from './reply.js';
import type { Handler } from './request.js';

export const ping: Handler<'ping'> = ({ connection }, message) => {
  connection.send({ type: 'pong', ...replyTo(message) });
};
