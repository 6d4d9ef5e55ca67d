import type { OperationKind } from '@callplane/core';
import type { ClaimedOperation } from '@callplane/db';
import type { Deps } from '../deps.js';
import { PARTICIPANT_REMOVE_STEPS } from './participant-remove.steps.js';
import { ROOM_END_STEPS } from './room-end.steps.js';

/** One step of a clean-up. Every step is idempotent, and each of its transactions writes only under the lease. */
export interface Step {
  /** Callers of the API see it in `lastError`. */
  name: string;
  /** @param note adds fields to the log line of the attempt. */
  run(deps: StepDeps, claim: ClaimedOperation, note: (fields: Record<string, unknown>) => void): Promise<void>;
}

export type StepDeps = Pick<Deps, 'database' | 'clock' | 'producer' | 'logger' | 'media' | 'relays' | 'graceMs'>;

/** Accepting the operation already prevents new tokens and joins, so no step has to. */
const STEPS: Record<OperationKind, readonly Step[]> = {
  'room.end': ROOM_END_STEPS,
  'participant.remove': PARTICIPANT_REMOVE_STEPS,
};

/** The steps of an operation kind, in order. The last one settles the operation as completed. */
export function stepsOf(kind: OperationKind): readonly Step[] {
  return STEPS[kind];
}
