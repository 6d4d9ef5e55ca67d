import { ok } from './reply.js';
import type { Handler } from './request.js';

export const resetMedia: Handler<'resetMedia'> = async ({ connection, session }, message) => {
  await session.media.reset(message.targets);
  ok(connection, message);
};
