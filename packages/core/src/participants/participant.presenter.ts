import { formatTimestamp } from '../time.js';
import type { TrackIdentity } from '../sessions/track.js';
import { joinedAt, leftAt, type ParticipantLiveState, type Permission, type Presence } from './participant.js';

/** A participant as stored; `joinedAt` and `leftAt` derive the presence that the API shows. */
export interface ParticipantState extends Presence {
  id: string;
  roomId: string;
  externalId: string | null;
  name: string;
  metadata: Record<string, unknown>;
  role: string;
}

/** A participant with what it does at this moment. */
export interface LiveParticipantState extends ParticipantState {
  isRemoved: boolean;
  /** Whether its live session has a connection. Null without a live session. */
  isConnected: boolean | null;
  permissions: Permission[];
  /** Those of its live session. */
  tracks: (TrackIdentity & { muted: boolean })[];
}

function liveStateOf(participant: LiveParticipantState, now: Date): ParticipantLiveState {
  if (participant.isRemoved) return 'removed';
  if (participant.isConnected !== null) return participant.isConnected ? 'connected' : 'disconnected';
  return leftAt(participant, now) === null ? 'invited' : 'left';
}

/** Presents a participant for reads and lists of the API. */
export function presentLiveParticipant(participant: LiveParticipantState, now: Date) {
  return {
    ...presentParticipant(participant, now),
    state: liveStateOf(participant, now),
    permissions: participant.permissions,
    tracks: participant.tracks.map(({ trackId, kind, source, muted }) => ({ trackId, kind, source, muted })),
  };
}

/** Presents a participant for events and for the answer to a change. */
export function presentParticipant(participant: ParticipantState, now: Date) {
  const left = leftAt(participant, now);
  return {
    id: participant.id,
    roomId: participant.roomId,
    externalId: participant.externalId,
    name: participant.name,
    metadata: participant.metadata,
    role: participant.role,
    joinedAt: formatTimestamp(joinedAt(participant)),
    leftAt: left === null ? null : formatTimestamp(left),
  };
}
