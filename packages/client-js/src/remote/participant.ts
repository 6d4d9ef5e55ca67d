import type { TrackKind, TrackSource } from '../protocol.generated.js';

/** Somebody else in the room. The object stays the same for as long as the session lasts; what it says changes. */
export interface Participant {
  readonly participantId: string;
  readonly sessionId: string;
  readonly name: string;
  readonly externalId: string | null;
  readonly metadata: Record<string, unknown>;
  readonly joinedAt: Date;
  /** False while its connection is lost and it may still come back. */
  readonly connected: boolean;
  /** By track id. */
  readonly tracks: ReadonlyMap<string, RemoteTrack>;
}

/** A track that somebody else publishes. */
export interface RemoteTrack {
  readonly participant: Participant;
  readonly trackId: string;
  readonly kind: TrackKind;
  readonly source: TrackSource;
  /** Whether its publisher sends nothing on it at present. */
  readonly muted: boolean;
  /** Present while it is received. */
  readonly mediaStreamTrack: MediaStreamTrack | undefined;
}
