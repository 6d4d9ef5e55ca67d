import type { OperationKind } from '@callplane/core';
import type { ClaimedOperation } from '@callplane/db';
import type { Deps } from '../deps.js';
import { PARTICIPANT_REMOVE_STEPS } from './participant-remove.steps.js';
import { ROOM_END_STEPS } from './room-end.steps.js';

/** A part of a clean-up. Each can be repeated safely, and each of its transactions writes only under the lease. */
export interface Step {
  /** In words that a caller may read in `lastError`. */
  name: string;
  /** @param note adds fields to the one line that tells of the attempt. */
  run(deps: StepDeps, claim: ClaimedOperation, note: (fields: Record<string, unknown>) => void): Promise<void>;
}

export type StepDeps = Pick<Deps, 'database' | 'clock' | 'producer' | 'logger' | 'media' | 'graceMs'>;

/** Accepting the operation has closed the door already: no tokens, no joins. */
const STEPS: Record<OperationKind, readonly Step[]> = {
  'room.end': ROOM_END_STEPS,
  'participant.remove': PARTICIPANT_REMOVE_STEPS,
};

/** The steps of a kind of operation, in order; the last one settles it as completed. */
export function stepsOf(kind: OperationKind): readonly Step[] {
  return STEPS[kind];
}
