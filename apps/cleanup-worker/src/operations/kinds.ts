import type { CleanUpKind } from './shared-steps.js';
import { PARTICIPANT_MOVE } from './participant-move/participant-move.js';
import { PARTICIPANT_REMOVE } from './participant-remove/participant-remove.js';
import { ROOM_END } from './room-end/room-end.js';

/** The kinds that this app works on. */
export const KINDS = {
  'room.end': ROOM_END,
  'participant.remove': PARTICIPANT_REMOVE,
  'participant.move': PARTICIPANT_MOVE,
} as const satisfies Record<string, CleanUpKind>;
