import type { OperationKind } from '@callplane/core';
import type { Step } from '../deps.js';
import { PARTICIPANT_REMOVE_STEPS } from './participant-remove.steps.js';
import { ROOM_END_STEPS } from './room-end.steps.js';

/** Accepting the operation already prevents new tokens and joins, so no step has to. */
const STEPS: Record<OperationKind, readonly Step[]> = {
  'room.end': ROOM_END_STEPS,
  'participant.remove': PARTICIPANT_REMOVE_STEPS,
};

/** The steps of an operation kind, in order. The last one settles the operation as completed. */
export function stepsOf(kind: OperationKind): readonly Step[] {
  return STEPS[kind];
}
