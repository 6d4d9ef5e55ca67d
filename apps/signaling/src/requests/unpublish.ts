import { ok } from './reply.js';
import type { Handler } from './request.js';

export const unpublish: Handler<'unpublish'> = async ({ connection, session }, message) => {
  await session.media.unpublish();
  ok(connection, message);
};
