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
import { wake, writeLeft, writeRoomEnded } from './events.js';

/** A part of a clean-up. Each can be repeated safely, and each of its transactions writes only under the lease. */
export interface Step {
  /** In words that a caller may read in `lastError`. */
  name: string;
  run(deps: Pick<Deps, 'database' | 'clock' | 'producer' | 'logger'>, claim: ClaimedOperation): Promise<void>;
}

/** Accepting the operation has closed the door already: no tokens, no joins. */
const STEPS: Record<OperationKind, readonly Step[]> = {
  'room.end': [
    {
      name: 'end sessions',
      async run(deps, claim) {
        for (let left = 1; left > 0;) {
          const now = deps.clock.now();
          const batch = await deps.database.transaction(async (tx) => {
            await assertLease(tx, claim);
            const presence = await endRoomPresence(tx, claim.roomId, now);
            return { left: presence.left, deliveries: await writeLeft(tx, claim, presence.ended, 'room_ended', now) };
          });
          left = batch.left;
          await wake(deps, batch.deliveries);
        }
      },
    },
    {
      name: 'mark the room ended',
      async run(deps, claim) {
        const now = deps.clock.now();
        const deliveries = await deps.database.transaction(async (tx) => {
          await settleCompleted(tx, claim, now);
          await markRoomEnded(tx, claim.roomId, now);
          return writeRoomEnded(tx, claim, now);
        });
        await wake(deps, deliveries);
      },
    },
  ],
  'participant.remove': [
    {
      name: 'end the session',
      async run(deps, claim) {
        const { participantId } = claim;
        if (participantId === null) throw new Error(`${claim.id} names no participant`);
        const now = deps.clock.now();
        const deliveries = await deps.database.transaction(async (tx) => {
          await settleCompleted(tx, claim, now);
          const ended = await endParticipantPresence(tx, participantId, 'removed', now);
          return writeLeft(tx, claim, ended, 'removed', now);
        });
        await wake(deps, deliveries);
      },
    },
  ],
};

/** The steps of a kind of operation, in order; the last one settles it as completed. */
export function stepsOf(kind: OperationKind): readonly Step[] {
  return STEPS[kind];
}
