import { IGNORE, NEVER, to, type StateTable } from '../../states/state-table.js';

/** The states of a publisher: the peer connection on which a client sends, with its handle on the media server. */
export type PublisherStateName =
  /** Without a handle. */
  | 'idle'
  /** The handle for an offer is being attached. */
  | 'attaching'
  /** The media server has the handle's first offer. */
  | 'offering'
  /** The offer is answered. ICE and DTLS are not up. */
  | 'connecting'
  /** The media server has a later offer. The negotiation before it is in effect until the answer. */
  | 'reoffering'
  /** Media can flow. The tracks are being written. */
  | 'announcing'
  /** The tracks are in PostgreSQL, so the others can receive them. */
  | 'live'
  /** The session is over at this gateway. */
  | 'closed';

export type PublisherEvent =
  /** The client has sent an offer. If a handle exists, the offer is from the same RTCPeerConnection. */
  | 'publish'
  | 'attached'
  | 'answered'
  /** The media server refused a later offer. The negotiation before it stays in effect. */
  | 'kept'
  /** The handle could not be attached, or is of no use after a refused offer. */
  | 'failed'
  /** ICE and DTLS are up. If they were up before a renegotiation, the publisher dispatches it again at the end. */
  | 'connected'
  /** The tracks are written. */
  | 'announced'
  /** PostgreSQL says that this gateway does not hold the session any more. */
  | 'notHeld'
  /** The media server has ended the handle. */
  | 'hungUp'
  /** The peer connection is not wanted any more, e.g. because the client closed it or the room moved. */
  | 'drop'
  /** The client's connection ended, so no client waits for the answer of a request. */
  | 'clientLost'
  /** The handle, negotiated and announced by another gateway, was taken over. */
  | 'claimed'
  | 'close';

export type PublisherAction =
  /** Writes the tracks. */
  | 'announce'
  /** Lets the request fail that is in progress. A handle that is still being attached is detached afterwards. */
  | 'cancel'
  | 'detach'
  /** Forgets the handle without a request: another gateway may have claimed it. */
  | 'forget'
  /** The client has lost its peer connection on the media server, and has to be told. */
  | 'lose'
  /** Reads whether the session is still live, and then does what `lose` does. */
  | 'check';

const DROPPED = to('idle', 'cancel', 'detach');
const HUNG_UP = to('idle', 'cancel', 'detach', 'check');
const CLOSED = to('closed', 'cancel', 'detach');

/** What each event does in each state. */
export const PUBLISHER_STATES = {
  idle: {
    publish: to('attaching'),
    attached: NEVER,
    answered: NEVER,
    kept: NEVER,
    failed: NEVER,
    connected: NEVER,
    announced: NEVER,
    notHeld: NEVER,
    hungUp: NEVER,
    drop: IGNORE,
    clientLost: IGNORE,
    claimed: to('live'),
    close: to('closed'),
  },
  attaching: {
    publish: NEVER,
    attached: to('offering'),
    answered: NEVER,
    kept: NEVER,
    failed: to('idle', 'cancel'),
    connected: NEVER,
    announced: NEVER,
    notHeld: NEVER,
    hungUp: NEVER,
    drop: to('idle', 'cancel'),
    clientLost: to('idle', 'cancel'),
    claimed: NEVER,
    close: to('closed', 'cancel'),
  },
  offering: {
    publish: NEVER,
    attached: NEVER,
    answered: to('connecting'),
    kept: NEVER,
    failed: DROPPED,
    connected: IGNORE,
    announced: NEVER,
    notHeld: NEVER,
    hungUp: HUNG_UP,
    drop: DROPPED,
    // The client has no answer, so its next offer may go to another handle.
    clientLost: DROPPED,
    claimed: NEVER,
    close: CLOSED,
  },
  connecting: {
    publish: to('reoffering'),
    attached: NEVER,
    answered: NEVER,
    kept: NEVER,
    failed: NEVER,
    connected: to('announcing', 'announce'),
    announced: NEVER,
    notHeld: NEVER,
    hungUp: HUNG_UP,
    drop: DROPPED,
    clientLost: IGNORE,
    claimed: NEVER,
    close: CLOSED,
  },
  reoffering: {
    publish: NEVER,
    attached: NEVER,
    answered: to('connecting'),
    kept: to('connecting'),
    failed: to('idle', 'cancel', 'detach', 'lose'),
    connected: IGNORE,
    announced: NEVER,
    notHeld: NEVER,
    hungUp: HUNG_UP,
    drop: DROPPED,
    // The client repeats its offer after the resumption.
    clientLost: to('connecting', 'cancel'),
    claimed: NEVER,
    close: CLOSED,
  },
  announcing: {
    publish: to('reoffering'),
    attached: NEVER,
    answered: NEVER,
    kept: NEVER,
    failed: NEVER,
    connected: IGNORE,
    announced: to('live'),
    notHeld: to('closed', 'cancel', 'forget'),
    hungUp: HUNG_UP,
    drop: DROPPED,
    clientLost: IGNORE,
    claimed: NEVER,
    close: CLOSED,
  },
  live: {
    publish: to('reoffering'),
    attached: NEVER,
    answered: NEVER,
    kept: NEVER,
    failed: NEVER,
    connected: IGNORE,
    announced: NEVER,
    notHeld: NEVER,
    hungUp: HUNG_UP,
    drop: DROPPED,
    clientLost: IGNORE,
    claimed: NEVER,
    close: CLOSED,
  },
  closed: {
    publish: NEVER,
    attached: NEVER,
    answered: NEVER,
    kept: NEVER,
    failed: NEVER,
    connected: NEVER,
    announced: NEVER,
    notHeld: NEVER,
    hungUp: NEVER,
    drop: IGNORE,
    clientLost: IGNORE,
    claimed: NEVER,
    close: IGNORE,
  },
} as const satisfies StateTable<PublisherStateName, PublisherEvent, PublisherAction>;
