import type { EventEmitter } from 'node:events';

/**
 * The media-server port: what Callplane asks of one media server (a node), in its own words. Every call has a deadline
 * and rejects with a {@link MediaError}; nothing waits for a server that does not answer.
 */
export interface MediaNode extends EventEmitter<MediaNodeEvents> {
  /** Its name in MEDIA_NODES. */
  readonly id: string;
  /** `up` while its connection stands and its pings are answered. Starts as `down`. */
  readonly state: 'up' | 'down';
  /** Resolves once it is up; rejects after the deadline. It goes on trying to connect either way. */
  untilUp(deadlineMs: number): Promise<void>;
  /** Makes the room unless it is there. Safe to repeat. */
  ensureRoom(roomId: string): Promise<void>;
  /** Ends the room and whoever is in it, and makes sure that it is gone. */
  destroyRoom(roomId: string): Promise<'destroyed' | 'absent'>;
  hasRoom(roomId: string): Promise<boolean>;
  /** Every room on this node, those of others included. */
  listRooms(): Promise<MediaRoom[]>;
  /** The feeds in a room, also of those who publish nothing at the moment; empty when there is no such room. */
  listFeeds(roomId: string): Promise<string[]>;
  /** Throws a feed out, whichever process owns it. `absent` when it is not there. */
  removeFeed(roomId: string, feedId: string): Promise<'removed' | 'absent'>;
  /** Stops forwarding one stream of a feed, whatever its publisher sends; or forwards it again. */
  moderate(roomId: string, feedId: string, mid: string, muted: boolean): Promise<void>;
  /** Joins a room as one who may publish; nothing is published yet. */
  attachPublisher(roomId: string, feedId: string): Promise<MediaPublisher>;
  /** Prepares to receive; the peer connection comes with the first streams. */
  attachSubscriber(roomId: string, label: string): Promise<MediaSubscriber>;
  /** Asks for an answer, within the deadline: finds a server that is frozen. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

export interface MediaNodeEvents {
  /** Answers again. It may have been restarted: rooms and handles of before are gone. */
  up: [];
  /** Its connection was lost or a ping went unanswered: every handle on it is dead. Not told of `close()`. */
  down: [error: Error];
}

export interface MediaRoom {
  roomId: string;
  /** How many are in it, as the media server counts them. */
  feeds: number;
}

export interface IceCandidate {
  candidate: string;
  sdpMid?: string | null | undefined;
  sdpMLineIndex?: number | null | undefined;
}

interface MediaPeer {
  /** A remote candidate; null ends them. */
  addCandidate(candidate: IceCandidate | null): Promise<void>;
  /** Gives the handle back; its peer connection is closed. Idempotent, never rejects. */
  detach(): Promise<void>;
}

export interface MediaPeerEvents {
  /** A local candidate; null ends them. */
  candidate: [candidate: IceCandidate | null];
  /** Media can flow: ICE and DTLS are up. */
  connected: [];
  /**
   * The peer connection has ended on the server's side (ICE failure, the browser closed it, kicked, room destroyed, no
   * answer to a change). The handle is dead, and given back already. A subscriber is not told of its room's end.
   */
  closed: [reason: string];
  /** Media of that section stopped or started to arrive at the server. */
  receiving: [mid: string, receiving: boolean];
}

export interface MediaPublisher extends MediaPeer, EventEmitter<MediaPeerEvents> {
  readonly feedId: string;
  /** Offers what is to be published from now on; also to change it. Returns the answer. */
  publish(sdp: string): Promise<string>;
  /** Publishes nothing any more; the peer connection is closed, the handle stays good for another. */
  unpublish(): Promise<void>;
}

/** A stream to receive. */
export interface StreamReference {
  feedId: string;
  mid: string;
}

export interface SubscriberOffer {
  sdp: string;
  /** Which media section carries which stream; sections without one are idle. */
  streams: (StreamReference & { subscriberMid: string })[];
}

export interface MediaSubscriber extends MediaPeer, EventEmitter<MediaPeerEvents> {
  /**
   * Receives these beside what it receives, and no more those. Resolves to an offer that must be answered before the
   * next change, or to null when nothing has to be negotiated. Streams that do not exist (any more) are skipped, and so
   * are those that it receives: one that ended and began again under the same reference goes into `remove` and `add`.
   * While an offer is unanswered the next change waits; beyond the deadline for answers it rejects with `timeout`.
   */
  update(change: { add: StreamReference[]; remove: StreamReference[] }): Promise<SubscriberOffer | null>;
  /** The answer to the latest offer: media starts to flow. One that is refused (`invalid_sdp`) may be given again. */
  answer(sdp: string): Promise<void>;
  /** Which simulcast layer to receive of a stream. */
  selectLayer(
    subscriberMid: string,
    layer: { spatial?: number | undefined; temporal?: number | undefined },
  ): Promise<void>;
}

export type MediaErrorCode =
  /** The node is down, or went down meanwhile. */
  | 'unavailable'
  /** No answer within the deadline. */
  | 'timeout'
  | 'no_such_room'
  | 'no_such_feed'
  /** A feed with that id is in the room already. */
  | 'feed_exists'
  /** The handle's peer connection has ended. */
  | 'closed'
  /** The media server refused the session description. */
  | 'invalid_sdp'
  /** Anything else that it answered. */
  | 'refused';

export class MediaError extends Error {
  constructor(
    readonly code: MediaErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'MediaError';
  }
}
