import { RequestFailure } from '../connections/request-failure.js';
import { ok } from './reply.js';
import type { Handler } from './request.js';

/** The others learn of the level within a second, and the seconds in each level become a part of the session's record. */
export const quality: Handler<'quality'> = ({ connection, deps, session }, message) => {
  if (!session.qualityBucket.take(performance.now())) throw new RequestFailure('rate_limited');
  deps.qualities.report(session.sessionId, message.level, message.relay ?? false);
  session.room.quality.levels.report(session.participantId, message.level);
  ok(connection, message);
};
