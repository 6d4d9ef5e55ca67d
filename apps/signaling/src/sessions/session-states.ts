import { IGNORE, NEVER, to, type StateTable } from '../states/state-table.js';

/** The states of a session at the gateway that holds it. */
export type SessionStateName =
  /** Its row is written by a join. The client does not know the resume secret before the welcome. */
  | 'joining'
  /** Its row is written by a resumption. The welcome follows. */
  | 'resuming'
  | 'connected'
  /** Without a connection. The client may resume it. */
  | 'grace'
  /** Its end is being written. */
  | 'ending'
  /** This gateway has let go of it, for whatever reason. */
  | 'gone';

export type SessionEvent =
  /** The welcome is being sent. */
  | 'welcomed'
  /** The connection ended in a way that the client may resume. */
  | 'lost'
  /** The connection ended because this gateway drains. */
  | 'drained'
  /** The connection ended in a way that the client cannot resume. */
  | 'closedForGood'
  | 'leave'
  /** The client resumed the session over another connection to this gateway. */
  | 'resumedHere'
  | 'resumedElsewhere'
  | 'graceOver'
  /** The end is in PostgreSQL. */
  | 'endWritten'
  /** PostgreSQL says that this gateway does not hold the session any more, or it could not be asked. */
  | 'notHeld'
  /** PostgreSQL says that the session has ended, with a reason. */
  | 'ended';

export type SessionAction =
  /** Forgets the connection, which has ended already. */
  | 'detach'
  /** Terminates the connection without a reason. */
  | 'dropConnection'
  /** Closes the connection with the reason of the event. */
  | 'closeConnection'
  | 'pauseMedia'
  /** Marks the session as disconnected in PostgreSQL. */
  | 'markLost'
  | 'startGrace'
  | 'stopGrace'
  /** Writes the end with the reason `left`. Answered by `endWritten` or `notHeld`. */
  | 'writeLeft'
  /** Writes the end with the reason `connection_lost`. Answered by `endWritten` or `notHeld`. */
  | 'writeLost'
  /** Ends the media. Only after PostgreSQL has said that the session is over: another gateway may have claimed it. */
  | 'destroyMedia'
  /** Forgets the media, which goes on for the gateway that has it, or ends by itself. */
  | 'abandonMedia';

const ABANDONED = to('gone', 'stopGrace', 'dropConnection', 'abandonMedia');
const OVER = to('gone', 'stopGrace', 'closeConnection', 'destroyMedia');
const RESUMED = to('resuming', 'stopGrace', 'dropConnection', 'pauseMedia');

/** What each event does in each state. docs/signaling-states.md is generated from this table. */
export const SESSION_STATES = {
  joining: {
    welcomed: to('connected'),
    lost: to('ending', 'detach', 'writeLost'),
    drained: to('ending', 'detach', 'writeLost'),
    closedForGood: to('ending', 'detach', 'writeLost'),
    leave: NEVER,
    resumedHere: NEVER,
    resumedElsewhere: ABANDONED,
    graceOver: NEVER,
    endWritten: NEVER,
    notHeld: ABANDONED,
    ended: OVER,
  },
  resuming: {
    welcomed: to('connected'),
    lost: to('grace', 'detach', 'pauseMedia', 'startGrace', 'markLost'),
    drained: to('grace', 'detach', 'pauseMedia', 'startGrace', 'markLost'),
    closedForGood: to('ending', 'detach', 'pauseMedia', 'writeLost'),
    leave: NEVER,
    resumedHere: RESUMED,
    resumedElsewhere: ABANDONED,
    graceOver: NEVER,
    endWritten: NEVER,
    notHeld: ABANDONED,
    ended: OVER,
  },
  connected: {
    welcomed: NEVER,
    lost: to('grace', 'detach', 'pauseMedia', 'startGrace', 'markLost'),
    drained: to('gone', 'detach', 'markLost', 'abandonMedia'),
    closedForGood: to('ending', 'detach', 'pauseMedia', 'writeLost'),
    leave: to('ending', 'writeLeft'),
    resumedHere: RESUMED,
    resumedElsewhere: ABANDONED,
    graceOver: NEVER,
    endWritten: NEVER,
    notHeld: ABANDONED,
    ended: OVER,
  },
  grace: {
    welcomed: NEVER,
    lost: NEVER,
    drained: to('gone', 'stopGrace', 'abandonMedia'),
    closedForGood: NEVER,
    leave: NEVER,
    resumedHere: RESUMED,
    resumedElsewhere: ABANDONED,
    graceOver: to('ending', 'writeLost'),
    endWritten: NEVER,
    notHeld: ABANDONED,
    ended: OVER,
  },
  ending: {
    welcomed: NEVER,
    // The client of a session that leaves may close its connection first.
    lost: to('ending', 'detach'),
    drained: to('ending', 'detach'),
    closedForGood: to('ending', 'detach'),
    leave: NEVER,
    resumedHere: RESUMED,
    resumedElsewhere: ABANDONED,
    graceOver: NEVER,
    endWritten: OVER,
    notHeld: ABANDONED,
    ended: OVER,
  },
  gone: {
    welcomed: NEVER,
    lost: IGNORE,
    drained: IGNORE,
    closedForGood: IGNORE,
    leave: IGNORE,
    resumedHere: NEVER,
    resumedElsewhere: IGNORE,
    graceOver: IGNORE,
    endWritten: IGNORE,
    notHeld: IGNORE,
    ended: IGNORE,
  },
} as const satisfies StateTable<SessionStateName, SessionEvent, SessionAction>;
