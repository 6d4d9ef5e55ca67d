import type { Layer } from '@callplane/protocol';

/** What a client has said about a track. */
export interface Choice {
  /** False: the client declined it. */
  selected: boolean;
  layer: Layer | undefined;
  paused: boolean;
}

/**
 * Where a session's media is, as `participant_sessions.media` holds it: what another gateway needs to take over the peer
 * connections while media flows. A half that is negotiating is null. The tracks themselves are in `session_tracks`; what
 * the media sections carry is asked of the media server.
 */
export interface MediaRecord {
  /** Number of the session's connection whose gateway wrote this. Another gateway in between leaves it outdated. */
  connection: number;
  nodeId: string;
  generation: number;
  /** Id of the session on the media server that holds both handles. */
  janusSession: number;
  publisher: PublisherRecord | null;
  subscriber: SubscriberRecord | null;
  /** What the client has chosen to receive, by track key. It holds even if the subscriber starts anew. */
  choices: readonly (readonly [string, Choice])[];
}

export interface PublisherRecord {
  handle: number;
  feedId: string;
  /** Identifies the client's RTCPeerConnection; see `CheckedOffer`. */
  peerConnection: string;
}

export interface SubscriberRecord {
  handle: number;
  /** The last offer, which the client has answered. */
  offerId: number;
}

/** Outcomes for the media of a session that was resumed at this gateway. */
export const CLAIM_OUTCOMES = [
  /** Each half that the other gateway had handed over goes on. */
  'continued',
  /** One half goes on. */
  'partly',
  /** Another gateway held the session in between, or the room's media is elsewhere by now. */
  'outdated',
  /** The client has lost its peer connections. */
  'reset',
  /** The media server does not have the session any more, or did not answer. */
  'lost',
] as const;

export type ClaimOutcome = (typeof CLAIM_OUTCOMES)[number];
