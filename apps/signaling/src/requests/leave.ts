import type { Handler } from './request.js';

/** The connection closes with the reason `left`; there is no other answer. */
export const leave: Handler<'leave'> = ({ session }) => session.leave();
