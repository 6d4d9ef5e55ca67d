import { replyTo } from './reply.js';
import type { Handler } from './request.js';

export const publish: Handler<'publish'> = async ({ connection, session }, message) => {
  const sdp = await session.media.publish(message);
  connection.send({ type: 'published', ...replyTo(message), sdp });
};
