import { RequestFailure } from '../connections/request-failure.js';
import { ok } from './reply.js';
import type { Handler } from './request.js';

export const refreshVideo: Handler<'refreshVideo'> = ({ connection, session }, message) => {
  if (!session.refreshBucket.take(performance.now())) throw new RequestFailure('rate_limited');
  session.media.refreshVideo(message.targets);
  ok(connection, message);
};
