export const PARTICIPANT_NAME_LENGTH_MAX = 120;
export const EXTERNAL_ID_LENGTH_MAX = 255;
export const PARTICIPANT_ROLE = 'participant';

export const PARTICIPANT_STATUSES = ['active', 'left'] as const;
export type ParticipantStatus = (typeof PARTICIPANT_STATUSES)[number];

/**
 * `invited`: has not connected yet. `disconnected`: in the room, its connection was lost a moment ago and may resume.
 * `left`: may join again with a valid token. `removed`: may not.
 */
export const PARTICIPANT_STATES = ['invited', 'connected', 'disconnected', 'left', 'removed'] as const;
export type ParticipantLiveState = (typeof PARTICIPANT_STATES)[number];

/** Why a session ended. */
export const SESSION_END_REASONS = ['left', 'removed', 'room_ended', 'connection_lost', 'superseded'] as const;
export type SessionEndReason = (typeof SESSION_END_REASONS)[number];

/** Permissions that a participant token can carry. */
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

/** The stored times of a participant's presence. */
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

/**
 * Time of leaving. A participant that never connected left when its last token expired; derived here, so that no sweep
 * has to write it.
 */
export function leftAt(presence: Presence, now: Date): Date | null {
  if (presence.leftAt !== null || presence.connectedAt !== null) return presence.leftAt;
  return presence.tokenExpiresAt <= now ? presence.tokenExpiresAt : null;
}
