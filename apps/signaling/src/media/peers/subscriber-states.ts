import { IGNORE, NEVER, to, type StateTable } from '../../states/state-table.js';

/** The states of the receiving connection at the gateway. */
export type SubscriberStateName =
  /** Without a handle on the media server. */
  | 'idle'
  | 'attaching'
  /** Requests to the media server are under way, so that it sends what is wanted. */
  | 'aligning'
  /** The client has an offer to answer. */
  | 'offered'
  /** The media server has the client's answer. */
  | 'answering'
  | 'stable'
  /** After a failure, before the next attempt. */
  | 'pausing'
  | 'closed';

export type SubscriberEvent =
  /** What is wanted, the media server, or the client's side may have changed. */
  | 'wake'
  | 'attached'
  /** The media server has made an offer. */
  | 'offer'
  /** The media server sends what is wanted, without an offer. */
  | 'aligned'
  | 'answer'
  /** The media server has accepted the answer. */
  | 'accepted'
  /** The answer is invalid. The client may send another. */
  | 'refused'
  /** The handle is lost before the client got an offer. */
  | 'failed'
  /** The handle is lost, and with it the client's peer connection. */
  | 'lost'
  /** The pause after a failure is over. */
  | 'retry'
  /** The client requests other ICE credentials. */
  | 'restart'
  /** The owner gives up the handle. */
  | 'drop'
  /** This gateway has taken over a handle of another one. */
  | 'claimed'
  | 'close';

export type SubscriberAction =
  | 'attach'
  | 'align'
  /** Remembers to align again. */
  | 'note'
  /** Remembers that the next alignment is a restart of ICE. */
  | 'noteRestart'
  /** Aligns again if that was noted. */
  | 'alignAgain'
  /** Sends the offer, and waits for an answer for a limited time. */
  | 'sendOffer'
  | 'stopWaiting'
  /** Tells the client what it receives. */
  | 'report'
  /** Detaches the handle, or the one that is being attached. */
  | 'detach'
  /** Waits before the next attempt. */
  | 'pause'
  | 'stopPause'
  /** Blocks the client's side until the client knows that its peer connection is lost. */
  | 'loseClient';

const NOTED = (state: SubscriberStateName) => to(state, 'note' as const);
const RESTART_NOTED = (state: SubscriberStateName) => to(state, 'noteRestart' as const, 'note' as const);
const DROPPED = to('idle', 'stopWaiting', 'detach');
const LOST = to('idle', 'stopWaiting', 'detach', 'loseClient');
const CLOSED = to('closed', 'stopWaiting', 'stopPause', 'detach');

/** What each event does in each state. */
export const SUBSCRIBER_STATES = {
  idle: {
    wake: to('attaching', 'attach'),
    attached: NEVER,
    offer: NEVER,
    aligned: NEVER,
    answer: NEVER,
    accepted: NEVER,
    refused: NEVER,
    failed: NEVER,
    lost: NEVER,
    retry: IGNORE,
    restart: IGNORE,
    drop: IGNORE,
    claimed: to('stable'),
    close: CLOSED,
  },
  attaching: {
    wake: NOTED('attaching'),
    attached: to('aligning', 'align'),
    offer: NEVER,
    aligned: NEVER,
    answer: NEVER,
    accepted: NEVER,
    refused: NEVER,
    failed: to('pausing', 'detach', 'pause'),
    lost: NEVER,
    retry: IGNORE,
    restart: IGNORE,
    drop: DROPPED,
    claimed: NEVER,
    close: CLOSED,
  },
  aligning: {
    wake: NOTED('aligning'),
    attached: NEVER,
    offer: to('offered', 'sendOffer'),
    aligned: to('stable', 'report', 'alignAgain'),
    answer: NEVER,
    accepted: NEVER,
    refused: NEVER,
    failed: to('pausing', 'detach', 'pause'),
    lost: LOST,
    retry: IGNORE,
    restart: RESTART_NOTED('aligning'),
    drop: DROPPED,
    claimed: NEVER,
    close: CLOSED,
  },
  offered: {
    wake: NOTED('offered'),
    attached: NEVER,
    offer: NEVER,
    aligned: NEVER,
    answer: to('answering'),
    accepted: NEVER,
    refused: NEVER,
    failed: NEVER,
    lost: LOST,
    retry: IGNORE,
    restart: RESTART_NOTED('offered'),
    drop: DROPPED,
    claimed: NEVER,
    close: CLOSED,
  },
  answering: {
    wake: NOTED('answering'),
    attached: NEVER,
    offer: NEVER,
    aligned: NEVER,
    answer: NEVER,
    accepted: to('stable', 'stopWaiting', 'report', 'alignAgain'),
    refused: to('offered'),
    failed: NEVER,
    lost: LOST,
    retry: IGNORE,
    restart: RESTART_NOTED('answering'),
    drop: DROPPED,
    claimed: NEVER,
    close: CLOSED,
  },
  stable: {
    wake: to('aligning', 'align'),
    attached: NEVER,
    offer: NEVER,
    aligned: NEVER,
    answer: NEVER,
    accepted: NEVER,
    refused: NEVER,
    failed: to('pausing', 'detach', 'pause'),
    lost: LOST,
    retry: IGNORE,
    restart: to('aligning', 'noteRestart', 'align'),
    drop: DROPPED,
    claimed: NEVER,
    close: CLOSED,
  },
  pausing: {
    wake: IGNORE,
    attached: NEVER,
    offer: NEVER,
    aligned: NEVER,
    answer: NEVER,
    accepted: NEVER,
    refused: NEVER,
    failed: NEVER,
    lost: NEVER,
    retry: to('idle', 'note', 'alignAgain'),
    restart: IGNORE,
    drop: to('idle', 'stopPause'),
    claimed: NEVER,
    close: CLOSED,
  },
  closed: {
    wake: IGNORE,
    attached: NEVER,
    offer: NEVER,
    aligned: NEVER,
    answer: NEVER,
    accepted: NEVER,
    refused: NEVER,
    failed: NEVER,
    lost: NEVER,
    retry: IGNORE,
    restart: IGNORE,
    drop: IGNORE,
    claimed: NEVER,
    close: IGNORE,
  },
} as const satisfies StateTable<SubscriberStateName, SubscriberEvent, SubscriberAction>;
