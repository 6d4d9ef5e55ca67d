/** WebSocket sub-protocol that a client must ask for, so that a later version can be told apart. */
export const SUBPROTOCOL = 'callplane.v1';

/** Bounds of the protocol; what goes beyond one is refused, never cut. */
export const PROTOCOL_LIMITS = {
  /** One frame from a client, in bytes. */
  frameBytesMax: 128 * 1024,
  /** One session description, in characters. */
  sdpCharsMax: 100_000,
  /** `message.data` once serialised, in bytes. */
  messageBytesMax: 16 * 1024,
  /** `metadata` once serialised, in bytes; the same as over HTTP. */
  metadataBytesMax: 16 * 1024,
  /** Tracks that one session may publish at once: microphone, camera, and a shared screen with its sound. */
  tracksMax: 4,
  /** Participants that one message may be addressed to. */
  recipientsMax: 100,
  /** Tracks in one subscribe or unsubscribe. */
  subscriptionsMax: 500,
} as const;
