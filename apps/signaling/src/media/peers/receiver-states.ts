import { IGNORE, to, type StateTable } from '../../states/state-table.js';

/** The states of the client's side. The receiving connection changes only while it is open. */
export type ReceiverStateName =
  | 'open'
  /** The session has no connection. */
  | 'paused'
  /** The client does not know yet that its peer connection is lost. */
  | 'blocked'
  | 'pausedAndBlocked';

export type ReceiverEvent =
  | 'pause'
  /** The session has a connection, and the client its welcome. */
  | 'unpause'
  /** The client's peer connection is lost. */
  | 'lost'
  /** The client knows that its peer connection is lost. */
  | 'unblock';

export type ReceiverAction =
  /** Repeats what the client may have missed. */
  | 'repeat'
  | 'wake'
  /**
   * Stops the timers for the answer and for absent streams: a client without a connection cannot answer. The pause
   * after a failure continues.
   */
  | 'stopTimers';

/** What each event does in each state of the client's side. */
export const RECEIVER_STATES = {
  open: {
    pause: to('paused', 'stopTimers'),
    unpause: IGNORE,
    lost: to('blocked'),
    unblock: to('open', 'wake'),
  },
  paused: {
    pause: IGNORE,
    unpause: to('open', 'repeat', 'wake'),
    lost: to('pausedAndBlocked'),
    unblock: IGNORE,
  },
  blocked: {
    pause: to('pausedAndBlocked', 'stopTimers'),
    unpause: IGNORE,
    lost: IGNORE,
    unblock: to('open', 'wake'),
  },
  pausedAndBlocked: {
    pause: IGNORE,
    unpause: to('blocked'),
    lost: IGNORE,
    unblock: to('paused'),
  },
} as const satisfies StateTable<ReceiverStateName, ReceiverEvent, ReceiverAction>;
