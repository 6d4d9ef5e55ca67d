import { pageText } from '../rooms/roster.js';
import { replyTo } from './reply.js';
import type { Handler } from './request.js';

const LIMIT_DEFAULT = 50;

export const roster: Handler<'roster'> = ({ connection, session }, message) => {
  const page = session.room.page(message.cursor ?? null, message.limit ?? LIMIT_DEFAULT);
  connection.sendText(pageText({ type: 'roster', ...replyTo(message) }, page));
};
