import type { EventEmitter } from 'node:events';

/**
 * The media-server port: the operations that Callplane needs from one media server (a node). Every call has a deadline
 * and rejects with a {@link MediaError}, so no caller waits for a server that does not answer.
 */
export interface MediaNode extends EventEmitter<MediaNodeEvents> {
  /** Its name in MEDIA_NODES or in the registry. */
  readonly id: string;
  /** `up` while the connection is open and the server answers pings. Starts as `down`. */
  readonly state: 'up' | 'down';
  /** Resolves once the node is up; rejects after the deadline. The node keeps trying to connect in either case. */
  untilUp(deadlineMs: number): Promise<void>;
  /** Creates the room if it does not exist. Idempotent. */
  ensureRoom(roomId: string): Promise<void>;
  /** Destroys the room, removes everyone in it, and verifies that the room is gone. */
  destroyRoom(roomId: string): Promise<'destroyed' | 'absent'>;
  /** Every room on this node, including rooms of other clients of the server. */
  listRooms(): Promise<MediaRoom[]>;
  /** The feeds in a room, including those that publish nothing at the moment. Empty if the room does not exist. */
  listFeeds(roomId: string): Promise<string[]>;
  /** Removes a feed, whichever process owns it. `absent` if there is no such feed. */
  removeFeed(roomId: string, feedId: string): Promise<'removed' | 'absent'>;
  /** Stops (`muted`) or resumes the forwarding of one stream, whatever its publisher sends. */
  moderate(roomId: string, feedId: string, mid: string, muted: boolean): Promise<void>;
  /** Opens a session, which holds the peers of one participant. */
  openSession(): Promise<MediaSession>;
  /**
   * Takes over a session that any process has opened, with its peers and their running media. The process that held it
   * gets no notice.
   * @throws MediaError `unavailable` if the session does not exist (any more)
   */
  claimSession(sessionId: number): Promise<MediaSession>;
  /** Ends a session with its peers, whichever process holds it. */
  destroySession(sessionId: number): Promise<'destroyed' | 'absent'>;
  /** Requests an answer within the deadline, which detects a frozen server. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

export interface MediaNodeEvents {
  /** The node answers again. It may have restarted: earlier rooms and handles are gone. */
  up: [];
  /** The connection was lost or a ping timed out: every handle on the node is dead. Not emitted for `close()`. */
  down: [error: Error];
}

export interface MediaRoom {
  roomId: string;
  /** The number of participants in the room, as the media server counts them. */
  feeds: number;
}

export interface IceCandidate {
  candidate: string;
  sdpMid?: string | null | undefined;
  sdpMLineIndex?: number | null | undefined;
}

/**
 * A set of peers that processes can hand over. The node keeps it alive until `destroy` or `abandon`. Without a process
 * that keeps it alive, the media server ends it after half a minute.
 */
export interface MediaSession {
  readonly id: number;
  /** Whether this process can use it: it was neither destroyed nor abandoned, and the media server still has it. */
  readonly isOpen: boolean;
  /** Joins a room as a publisher, without publishing anything yet. */
  attachPublisher(roomId: string, feedId: string): Promise<MediaPublisher>;
  /** Prepares to receive; the first streams create the peer connection. */
  attachSubscriber(roomId: string, label: string): Promise<MediaSubscriber>;
  /** Takes over a publisher of a claimed session. Sends no request. */
  adoptPublisher(handleId: number, feedId: string): MediaPublisher;
  /** Takes over a subscriber of a claimed session. Sends no request. */
  adoptSubscriber(adopted: AdoptedSubscriber): MediaSubscriber;
  /** Frees a peer of a claimed session that is not taken over. Never rejects. */
  detach(handleId: number): Promise<void>;
  /** Ends the session with its peers. They emit no events. Idempotent, never rejects. */
  destroy(): Promise<void>;
  /** Forgets the session without a request: another process may have claimed it. Idempotent. */
  abandon(): void;
}

/** A subscriber whose last offer is answered, as its previous process knew it. */
export interface AdoptedSubscriber {
  roomId: string;
  label: string;
  handleId: number;
  streams: readonly CarriedStream[];
}

interface MediaPeer {
  /** Its id within its session. */
  readonly handleId: number;
  /**
   * Whether the peer has ended because a change got no answer. Its handle is not freed then: another process may have
   * claimed the session, and with it the answer. The owner calls `detach` once it knows that it still holds the session.
   */
  readonly isUnanswered: boolean;
  /** Adds a remote candidate; null marks the end of candidates. */
  addCandidate(candidate: IceCandidate | null): Promise<void>;
  /** Frees the handle and closes its peer connection. Idempotent, never rejects. */
  detach(): Promise<void>;
}

export interface MediaPeerEvents {
  /** A local candidate; null marks the end of candidates. */
  candidate: [candidate: IceCandidate | null];
  /** Media can flow: ICE and DTLS are up. */
  connected: [];
  /**
   * The server side of the peer connection has ended (ICE failure, the browser closed it, kicked, room destroyed, no
   * answer to a change). The handle is dead and already freed, unless `isUnanswered`. A subscriber gets no notice of its
   * room's end.
   */
  closed: [reason: string];
  /**
   * The media server has carried out a request of the process that held the session before: it was under way when this
   * process claimed the session, or that process does not know of the claim yet.
   */
  disturbed: [];
  /** Media of that section started or stopped arriving at the server. */
  receiving: [mid: string, receiving: boolean];
  /** The server has noticed this number of lost packets of one section, in either direction, within about a second. */
  slowLink: [lost: number];
  /**
   * Only for publishers: that section carries speech from now on, with this average level (dBov without its sign: 0 is
   * the loudest, 127 silence); null when it no longer does.
   */
  talking: [mid: string, level: number | null];
}

export interface PublishOptions {
  /** Number of audio packets (20 ms each) whose average level decides whether a track carries speech. The node has a default. */
  audioActivePackets?: number | undefined;
}

export interface MediaPublisher extends MediaPeer, EventEmitter<MediaPeerEvents> {
  readonly feedId: string;
  /** Offers all streams to publish from now on; also changes an earlier offer. Resolves to the SDP answer. */
  publish(sdp: string, options?: PublishOptions): Promise<string>;
  /** Asks the client for a key frame of each video stream. */
  requestKeyFrames(): Promise<void>;
  /** Stops publishing: closes the peer connection, and keeps the handle for a later `publish`. */
  unpublish(): Promise<void>;
}

/** Names a stream to receive. */
export interface StreamReference {
  feedId: string;
  mid: string;
}

/** A stream and the media section that carries it. */
export type CarriedStream = StreamReference & { subscriberMid: string };

export interface SubscriberOffer {
  sdp: string;
  /** Maps streams to media sections; sections without a stream are idle. */
  streams: CarriedStream[];
  /** The number of media sections, idle ones included. It never shrinks. */
  sectionCount: number;
}

/** What a media section carries, as the media server knows it. */
export interface CarriedSection extends CarriedStream {
  /** False while the offer that gave the section its stream has no answer. */
  isNegotiated: boolean;
  settings: StreamSettings;
}

export interface SwitchOutcome {
  /** What the sections carry now. A section keeps its stream if the new one is absent or has another kind or codec. */
  streams: CarriedStream[];
  /** The requested streams that do not exist. */
  absent: StreamReference[];
  /** Not null if a section has lost its earlier stream meanwhile: it must be answered, as after `update`. */
  offer: SubscriberOffer | null;
}

/** How a received stream is sent. A field that is absent stays as it is. */
export interface StreamSettings {
  /** Simulcast layer: 0 is the lowest. */
  spatial?: number | undefined;
  /** Frame-rate layer: 0 is the lowest. */
  temporal?: number | undefined;
  /** Whether nothing is sent for now. The section keeps its stream. */
  paused?: boolean | undefined;
}

export interface MediaSubscriber extends MediaPeer, EventEmitter<MediaPeerEvents> {
  /**
   * Starts receiving the streams in `add` and stops receiving those in `remove`. Resolves to an offer that must be
   * answered before the next change, or to null if no negotiation is needed.
   * Skips streams that do not exist and streams that it already receives. A stream that ended and began again under the
   * same reference goes into both `remove` and `add`.
   * While an offer is unanswered the next change waits; after the deadline for answers it rejects with `timeout`.
   */
  update(change: {
    add: (StreamReference & StreamSettings)[];
    remove: StreamReference[];
  }): Promise<SubscriberOffer | null>;
  /** Gives media sections other streams, without an offer. The new streams are sent in full, not paused. */
  switch(changes: CarriedStream[]): Promise<SwitchOutcome>;
  /** Asks the media server what the sections carry; idle ones are left out. Changes nothing. */
  listSections(): Promise<CarriedSection[]>;
  /**
   * Answers the latest offer, after which media flows. If the server rejects the answer (`invalid_sdp`), the caller may
   * send another.
   */
  answer(sdp: string): Promise<void>;
  /**
   * Begins ICE anew, with the streams and media sections as they are.
   * @returns an offer that must be answered, as after `update`
   */
  restart(): Promise<string>;
  /** Changes how received streams are sent, without an offer. */
  configure(settings: (StreamSettings & { subscriberMid: string })[]): Promise<void>;
  /** Asks for key frames of the video in these sections, which must not be paused. */
  requestKeyFrames(subscriberMids: readonly string[]): Promise<void>;
}

export type MediaErrorCode =
  /** The node is down, or went down during the call. */
  | 'unavailable'
  /** No answer within the deadline. */
  | 'timeout'
  | 'no_such_room'
  | 'no_such_feed'
  /** A feed with that id is already in the room. */
  | 'feed_exists'
  /** The handle's peer connection has ended. */
  | 'closed'
  /** The media server rejected the session description. */
  | 'invalid_sdp'
  /** Any other error of the media server. */
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
