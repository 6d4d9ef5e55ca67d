export const PARTICIPANT_NAME_LENGTH_MAX = 120;
export const EXTERNAL_ID_LENGTH_MAX = 255;
export const PARTICIPANT_ROLE = 'participant';

export const PARTICIPANT_STATUSES = ['active', 'left'] as const;
export type ParticipantStatus = (typeof PARTICIPANT_STATUSES)[number];

/** Why a session ended. */
export const SESSION_END_REASONS = ['left', 'removed', 'room_ended', 'connection_lost', 'superseded'] as const;
export type SessionEndReason = (typeof SESSION_END_REASONS)[number];

/** What a participant token may permit. */
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

/** The moments of a participant's life that the database holds. */
export interface Presence {
  readonly createdAt: Date;
  readonly connectedAt: Date | null;
  readonly leftAt: Date | null;
  readonly tokenExpiresAt: Date;
}

/** Until its first connection a participant has joined when its token was issued. */
export function joinedAt(presence: Presence): Date {
  return presence.connectedAt ?? presence.createdAt;
}

/** One that never connected has left when its last token expired: derived, so no sweep has to write it. */
export function leftAt(presence: Presence, now: Date): Date | null {
  if (presence.leftAt !== null || presence.connectedAt !== null) return presence.leftAt;
  return presence.tokenExpiresAt <= now ? presence.tokenExpiresAt : null;
}
