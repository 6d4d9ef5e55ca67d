import { ok } from './reply.js';
import type { Handler } from './request.js';

export const mute: Handler<'mute'> = async ({ connection, session }, message) => {
  await session.media.mute(message.trackId, message.muted);
  ok(connection, message);
};
