import { CallplaneError } from '../errors.js';
import type { CloseReason } from '../protocol.generated.js';
import type { SocketEnd } from './socket.js';

/** Why a call is over. The README has a table of the reasons. */
export interface CloseInfo {
  /** The gateway's reason; or `unreachable` (never joined), `connection_lost` (gave up after the grace period). */
  reason: CloseReason | 'unreachable' | 'connection_lost';
  message: string;
  /** Whether the page may join again by itself: nobody ended the session on purpose, and the token was not refused. */
  canRejoin: boolean;
}

/** How the gateway, or a lost connection, ended the session for good. */
export function closeOf({ message, reconnect }: SocketEnd, reason: CloseInfo['reason']): CloseInfo {
  return { reason, message, canRejoin: reconnect !== 'no' };
}

/** The error of whatever the end of the call interrupts or prevents. */
export function errorOf({ reason, message }: CloseInfo): CallplaneError {
  return new CallplaneError(reason === 'left' ? 'closed' : reason, message);
}
