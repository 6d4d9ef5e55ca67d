import { withParticipants } from '../rooms/roster.js';
import { replyTo } from './reply.js';
import type { Handler } from './request.js';

export const show: Handler<'show'> = ({ connection, session }, message) => {
  const participants = session.room.show(session, message.participantIds, message.publishers ?? true);
  connection.sendText(withParticipants({ type: 'shown', ...replyTo(message) }, participants));
  session.room.quality.welcome(session);
};
