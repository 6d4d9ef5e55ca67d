import { ok } from './reply.js';
import type { Handler } from './request.js';

export const answer: Handler<'answer'> = async ({ connection, session }, message) => {
  await session.media.answer(message.offerId, message.sdp);
  ok(connection, message);
};
