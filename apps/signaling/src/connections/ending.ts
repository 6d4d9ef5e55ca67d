import type { CloseReason } from '@callplane/protocol';

/**
 * How a connection ended: a close reason, `lost` (the socket closed) or `moved` (the session has another connection).
 */
export type Ending = CloseReason | 'lost' | 'moved';

export interface CloseDetails {
  /** For the log: why the gateway chose this reason. */
  cause: string;
  /** For the client. */
  retryAfterSeconds?: number;
}
