/** `created` → `active` (first join) → `ending` (end accepted) → `ended` (clean-up complete). */
export const ROOM_STATUSES = ['created', 'active', 'ending', 'ended'] as const;
export type RoomStatus = (typeof ROOM_STATUSES)[number];

export const ROOM_NAME_LENGTH_MAX = 120;
export const ROOM_MAX_PARTICIPANTS_DEFAULT = 100;
export const ROOM_MAX_PARTICIPANTS_MAX = 100_000;

/** From `ending` on no token is issued and nobody joins. */
export function isOpen(status: RoomStatus): boolean {
  return status === 'created' || status === 'active';
}
