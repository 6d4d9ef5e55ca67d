export interface MediaNodeEvents {
  /** The node answers again. It may have restarted: earlier rooms and handles are gone. */
  up: [];
  /** The connection was lost or a ping timed out: every handle on the node is dead. Not emitted for `close()`. */
  down: [error: Error];
  /** A Janus before the oldest permitted version answers. Unless that is allowed, the node stays down. */
  outdated: [version: string];
}

export interface MediaRoom {
  roomId: string;
  /** The number of participants in the room, as the media server counts them. */
  feeds: number;
}

export interface RoomRecording {
  /** Where the server writes the files. */
  folder: string;
  /** After this time without a key frame, the server asks the publisher of a video for one. */
  keyFrameSeconds: number;
}

export interface IceCandidate {
  candidate: string;
  sdpMid?: string | null | undefined;
  sdpMLineIndex?: number | null | undefined;
}

export interface MediaPeerEvents {
  /** Media can flow: ICE and DTLS are up. */
  connected: [];
  /**
   * The server side of the peer connection has ended (ICE failure, the browser closed it, kicked, room destroyed, no
   * answer to a change). The handle is dead and already freed. A subscriber gets no notice of its room's end.
   */
  closed: [reason: string];
  /**
   * The media server has carried out a request of the process that held the session before: it was under way when this
   * process claimed the session, or that process does not know of the claim yet.
   */
  disturbed: [];
  /**
   * Only for publishers: that section carries speech from now on, with this average level (dBov without its sign: 0 is
   * the loudest, 127 silence); null when it no longer does.
   */
  talking: [mid: string, level: number | null];
  /** Only for publishers: packets of that layer of a section have begun or stopped to arrive. */
  receiving: [mid: string, layer: number, isReceiving: boolean];
}

export interface StreamReference {
  feedId: string;
  mid: string;
}

/** A feed that a node receives from another one. */
export interface RemoteFeed {
  /** Its feed id on the receiving node, and the name of the forward on the sending one. */
  name: string;
  /** The receiving node's UDP port for RTP. The next one is for RTCP. */
  port: number;
  /** Ids of the header extensions with the level of audio and the orientation of video, by mid. */
  extensionIds: ReadonlyMap<string, number>;
}

/** A stream of a feed, as another node has to know it. */
export interface ForwardedStream {
  mid: string;
  kind: 'audio' | 'video';
  codec: string;
  /** More facts about it, in Janus' words. */
  rest: Readonly<Record<string, unknown>>;
}

/** A stream and the media section that is to carry it. */
export type CarriedStream = StreamReference & { subscriberMid: string };

export interface StreamLayers {
  /** Simulcast layer: 0 is the lowest. */
  spatial?: number | undefined;
  /** Frame-rate layer: 0 is the lowest. */
  temporal?: number | undefined;
}

/** A section's next stream. Absent layers are the highest ones. */
export type StreamSwitch = CarriedStream & StreamLayers;

/** How a received stream is sent. A field that is absent stays as it is. */
export interface StreamSettings extends StreamLayers {
  /** Whether nothing is sent for now. The section keeps its stream. */
  paused?: boolean | undefined;
}

export type SectionSettings = StreamSettings & { subscriberMid: string };

export interface SubscriberChange {
  add: (StreamReference & StreamSettings)[];
  /** The sections whose streams are no longer received. */
  remove: string[];
}

export interface SubscriberOffer {
  sdp: string;
  /** All media sections, idle ones included. Their number never shrinks. */
  sections: ListedSection[];
}

export interface SwitchOutcome {
  /**
   * All sections as they are now; null if none of the requested streams exists. A section keeps its stream if the new
   * one is absent or has another kind or codec.
   */
  sections: ListedSection[] | null;
  absent: StreamReference[];
  /** Not null if a section has lost its earlier stream meanwhile: it must be answered, as after `update`. */
  offer: SubscriberOffer | null;
}

/** A media section as the media server knows it. */
export interface ListedSection {
  subscriberMid: string;
  kind: 'audio' | 'video';
  /** Null while it is idle. */
  stream: StreamReference | null;
  /** False while the offer that added the section has no answer. */
  isNegotiated: boolean;
  settings: StreamSettings;
}

export type MediaErrorCode =
  /** The node is down, or went down during the call. */
  | 'unavailable'
  | 'timeout'
  /** The node refuses the version of its Janus. */
  | 'outdated'
  | 'no_such_room'
  | 'no_such_feed'
  | 'feed_exists'
  /** The handle's peer connection has ended. */
  | 'closed'
  | 'invalid_sdp'
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
