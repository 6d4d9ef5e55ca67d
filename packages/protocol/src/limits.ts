/** WebSocket sub-protocol that a client offers: the version of the protocol. */
export const SUBPROTOCOL = 'callplane.v1';

/** Limits of the protocol. The gateway refuses input beyond a limit and never truncates it. */
export const PROTOCOL_LIMITS = {
  /** Size of one frame from a client, in bytes. */
  frameBytesMax: 128 * 1024,
  /** Size of the first frame of a connection, in bytes. It is small because the sender is not authenticated yet. */
  firstFrameBytesMax: 10 * 1024,
  /** Length of one session description, in characters. */
  sdpCharsMax: 100_000,
  /** Size of the serialised `message.data`, in bytes. */
  messageBytesMax: 16 * 1024,
  /**
   * Size of `metadata` in bytes as PostgreSQL returns it, with numbers written in full. Equal to the HTTP API's limit.
   */
  metadataBytesMax: 16 * 1024,
  /** Tracks that one session may publish at once: microphone, camera, shared screen and the screen's sound. */
  tracksMax: 4,
  /** Participants in the `to` of one message. */
  recipientsMax: 100,
  /** Tracks in one `subscribe` or `unsubscribe`. */
  subscriptionsMax: 500,
  /** Video tracks, and audio tracks, that a client receives at a time. */
  videoSectionsMax: 25,
  audioSectionsMax: 8,
  /** Media sections of a client's receiving connection, idle ones included. */
  sectionsMax: 40,
  /** Participants in one `speakers`. */
  speakersMax: 20,
  /** Participants in one `show`. */
  shownMax: 200,
  /** Publishers that a client shows without a `show` of their own: the first ones by session id. */
  publishersShownMax: 100,
  /** Participants on one page of the roster. */
  rosterPageMax: 100,
  /** Size of one page of the roster, in bytes. A page has at least one participant. */
  rosterPageBytesMax: 256 * 1024,
} as const;
