import type { Handler } from './request.js';

/** The session's media sends the answer, `published`, with the media server's session description. */
export const publish: Handler<'publish'> = ({ session }, message) => session.media.publish(message);
