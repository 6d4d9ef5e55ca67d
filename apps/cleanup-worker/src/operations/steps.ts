import type { OperationKind } from '@callplane/core';
import {
  assertLease,
  endParticipantPresence,
  endRoomPresence,
  markRoomEnded,
  settleCompleted,
  type ClaimedOperation,
} from '@callplane/db';
import type { Deps } from '../deps.js';

/** A part of a clean-up. Each can be repeated safely, and each of its transactions writes only under the lease. */
export interface Step {
  /** In words that a caller may read in `lastError`. */
  name: string;
  run(deps: Pick<Deps, 'database' | 'clock'>, claim: ClaimedOperation): Promise<void>;
}

/** Accepting the operation has closed the door already: no tokens, no joins. */
const STEPS: Record<OperationKind, readonly Step[]> = {
  'room.end': [
    {
      name: 'end sessions',
      async run({ database, clock }, claim) {
        let left: number;
        do {
          left = await database.transaction(async (tx) => {
            await assertLease(tx, claim);
            return endRoomPresence(tx, claim.roomId, clock.now());
          });
        } while (left > 0);
      },
    },
    {
      name: 'mark the room ended',
      async run({ database, clock }, claim) {
        const now = clock.now();
        await database.transaction(async (tx) => {
          await settleCompleted(tx, claim, now);
          await markRoomEnded(tx, claim.roomId, now);
        });
      },
    },
  ],
  'participant.remove': [
    {
      name: 'end the session',
      async run({ database, clock }, claim) {
        const { participantId } = claim;
        if (participantId === null) throw new Error(`${claim.id} names no participant`);
        const now = clock.now();
        await database.transaction(async (tx) => {
          await settleCompleted(tx, claim, now);
          await endParticipantPresence(tx, participantId, 'removed', now);
        });
      },
    },
  ],
};

/** The steps of a kind of operation, in order; the last one settles it as completed. */
export function stepsOf(kind: OperationKind): readonly Step[] {
  return STEPS[kind];
}
