export const PARTICIPANT_NAME_LENGTH_MAX = 120;
export const EXTERNAL_ID_LENGTH_MAX = 255;
/** The role of a participant whose token request names none. Roles grant nothing: permissions do. */
export const PARTICIPANT_ROLE = 'participant';
export const ROLE_LENGTH_MAX = 32;

/** `waiting`: in the lobby. */
export const PARTICIPANT_STATUSES = ['active', 'waiting', 'left'] as const;
export type ParticipantStatus = (typeof PARTICIPANT_STATUSES)[number];

/**
 * `invited`: has not connected yet. `waiting`: in the lobby. `disconnected`: in the room, its connection was lost a moment
 * ago and may resume. `left`: may join again with a valid token. `removed` and `moved` (to another room): may not.
 */
export const PARTICIPANT_STATES = [
  'invited',
  'waiting',
  'connected',
  'disconnected',
  'left',
  'removed',
  'moved',
] as const;
export type ParticipantLiveState = (typeof PARTICIPANT_STATES)[number];

export const SESSION_END_REASONS = ['left', 'removed', 'room_ended', 'connection_lost', 'superseded', 'moved'] as const;
export type SessionEndReason = (typeof SESSION_END_REASONS)[number];

export const PERMISSIONS = [
  'room:join',
  'audio:publish',
  'video:publish',
  'screen:publish',
  'messages:send',
  'metadata:update',
] as const;
export type Permission = (typeof PERMISSIONS)[number];

export const TOKEN_TTL_SECONDS = { min: 60, default: 600, max: 3600 } as const;

export interface Presence {
  readonly createdAt: Date;
  readonly connectedAt: Date | null;
  readonly leftAt: Date | null;
  readonly tokenExpiresAt: Date;
}

/** Time of joining: the first connection, or the issue of the token before that. */
export function joinedAt(presence: Presence): Date {
  return presence.connectedAt ?? presence.createdAt;
}

/** A participant that never connected left when its last token expired. No sweep writes that. */
export function leftAt(presence: Presence, now: Date): Date | null {
  if (presence.leftAt !== null || presence.connectedAt !== null) return presence.leftAt;
  return presence.tokenExpiresAt <= now ? presence.tokenExpiresAt : null;
}

export const TRACK_KINDS = ['audio', 'video'] as const;
type TrackKind = (typeof TRACK_KINDS)[number];

/** Declared by the publisher: the SDP of a browser does not distinguish a camera from a screen. */
export const TRACK_SOURCES = ['microphone', 'camera', 'screen', 'screen_audio'] as const;
export type TrackSource = (typeof TRACK_SOURCES)[number];

export const PERMISSION_OF_SOURCE = {
  microphone: 'audio:publish',
  screen_audio: 'screen:publish',
  camera: 'video:publish',
  screen: 'screen:publish',
} as const satisfies Record<TrackSource, Permission>;

export function publishableSources(permissions: readonly Permission[]): TrackSource[] {
  return TRACK_SOURCES.filter((source) => permissions.includes(PERMISSION_OF_SOURCE[source]));
}

export interface TrackIdentity {
  trackId: string;
  kind: TrackKind;
  source: TrackSource;
}

export function presentTrack({ trackId, kind, source }: TrackIdentity): TrackIdentity {
  return { trackId, kind, source };
}

/** A participant as stored; `joinedAt` and `leftAt` derive the presence that the API shows. */
export interface ParticipantState extends Presence {
  id: string;
  roomId: string;
  externalId: string | null;
  name: string;
  metadata: Record<string, unknown>;
  role: string;
}

/** A participant in the other room of a move. */
export interface OtherParticipant {
  roomId: string;
  participantId: string;
}

export interface LiveParticipantState extends ParticipantState {
  isRemoved: boolean;
  /** Whether its live session has a connection. Null without a live session. */
  isConnected: boolean | null;
  /** Whether its sessions are in the lobby. */
  isWaiting: boolean;
  permissions: Permission[];
  /** Tracks of its live session. */
  tracks: (TrackIdentity & { muted: boolean })[];
  movedTo: OtherParticipant | null;
  movedFrom: OtherParticipant | null;
}

function liveStateOf(participant: LiveParticipantState, now: Date): ParticipantLiveState {
  if (participant.isRemoved) return 'removed';
  if (participant.movedTo !== null) return 'moved';
  if (participant.isConnected !== null && participant.isWaiting) return 'waiting';
  if (participant.isConnected !== null) return participant.isConnected ? 'connected' : 'disconnected';
  return leftAt(participant, now) === null ? 'invited' : 'left';
}

/** Presents a participant for reads and lists of the API. */
export function presentLiveParticipant(participant: LiveParticipantState, now: Date) {
  const { movedTo, movedFrom } = participant;
  return {
    ...presentParticipant(participant, now),
    state: liveStateOf(participant, now),
    permissions: participant.permissions,
    tracks: participant.tracks.map(({ trackId, kind, source, muted }) => ({ trackId, kind, source, muted })),
    ...(movedTo === null ? {} : { movedTo }),
    ...(movedFrom === null ? {} : { movedFrom }),
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
    joinedAt: joinedAt(participant).toISOString(),
    leftAt: left === null ? null : left.toISOString(),
  };
}
