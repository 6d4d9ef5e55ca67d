import type { Choice } from '../tracks/select-tracks.js';
import type { Section } from '../tracks/sections.js';

/**
 * Where a session's media is, as `participant_sessions.media` holds it: what another gateway needs to take over the peer
 * connections while media flows. A half that is negotiating is null. The tracks themselves are in `session_tracks`.
 */
export interface MediaState {
  /** Number of the session's connection whose gateway wrote this. An older gateway in between leaves it outdated. */
  connection: number;
  nodeId: string;
  generation: number;
  /** Id of the session on the media server that holds both handles. */
  janusSession: number;
  publisher: PublisherState | null;
  subscriber: SubscriberState | null;
  /** What the client has chosen to receive, by track key. It holds even if the subscriber starts anew. */
  choices: readonly (readonly [string, Choice])[];
}

export interface PublisherState {
  handle: number;
  feedId: string;
  /** Identifies the client's RTCPeerConnection; see `CheckedOffer`. */
  peerConnection: string;
}

export interface SubscriberState {
  handle: number;
  /** The last offer, which the client has answered. */
  offerId: number;
  sectionCount: number;
  sections: readonly Section[];
}

/** Outcomes for the media of a session that was resumed at this gateway. */
export const CLAIM_OUTCOMES = [
  /** Each half that the other gateway had handed over goes on. */
  'continued',
  /** One half goes on. */
  'partly',
  /** An older gateway held the session in between, or the room's media is elsewhere by now. */
  'outdated',
  /** The client has lost its peer connections. */
  'reset',
  /** The media server does not have the session any more, or did not answer. */
  'lost',
] as const;

export type ClaimOutcome = (typeof CLAIM_OUTCOMES)[number];

/** @returns null for anything that this version has not written. */
export function readMediaState(value: unknown): MediaState | null {
  const { connection, nodeId, generation, janusSession, publisher, subscriber, choices } = objectOf(value);
  if (!areNumbers(connection, generation, janusSession) || typeof nodeId !== 'string') return null;
  return {
    connection: Number(connection),
    nodeId,
    generation: Number(generation),
    janusSession: Number(janusSession),
    publisher: readPublisher(publisher),
    subscriber: readSubscriber(subscriber),
    choices: Array.isArray(choices) ? (choices as MediaState['choices']) : [],
  };
}

function readPublisher(value: unknown): PublisherState | null {
  const { handle, feedId, peerConnection } = objectOf(value);
  if (!areNumbers(handle) || typeof feedId !== 'string' || typeof peerConnection !== 'string') return null;
  return { handle: Number(handle), feedId, peerConnection };
}

function readSubscriber(value: unknown): SubscriberState | null {
  const { handle, offerId, sectionCount, sections } = objectOf(value);
  if (!areNumbers(handle, offerId, sectionCount) || !Array.isArray(sections)) return null;
  return value as SubscriberState;
}

function areNumbers(...values: unknown[]): boolean {
  return values.every((value) => typeof value === 'number');
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
