import type { RoomChanges } from '@callplane/db';
import type { RoomNotice } from '@callplane/queue';

/** What an instance does with a notice about a room. */
export type Reaction = 'ignore' | 'apply' | 'read';

/**
 * Notices may be lost, repeated and reordered. One is applied only if it continues what is known; after a gap the
 * instance reads.
 * @param known the version of the room that this instance knows; null if it has not read the room yet.
 */
export function reactionTo({ range, changes }: RoomNotice, known: number | null): Reaction {
  if (known === null || range.version === null) return 'read';
  if (known >= range.version) return 'ignore';
  return changes !== undefined && range.after !== null && range.after <= known ? 'apply' : 'read';
}

/** The changes of a notice: JSON has no dates. */
export function reviveChanges(notified: unknown): RoomChanges {
  const changes = notified as RoomChanges;
  const { createdAt, startedAt, endedAt } = changes.room;
  const date = (at: Date | string): Date => new Date(at);
  const room = {
    ...changes.room,
    createdAt: date(createdAt),
    startedAt: startedAt === null ? null : date(startedAt),
    endedAt: endedAt === null ? null : date(endedAt),
  };
  return { ...changes, room };
}
