import { CONCURRENCY_PER_WORKER } from '@callplane/core';
import { moveParticipant, type MoveInput } from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import {
  CHECK_MEDIA_STEP,
  CLOSE_RELAYS_STEP,
  participantOf,
  type CleanUpKind,
  type CleanUpStep,
} from '../shared-steps.js';

const STEPS: readonly CleanUpStep[] = [
  {
    name: 'move the session',
    async run(deps, claim) {
      const participantId = participantOf(claim);
      const moved = await deps.database.transaction((tx) =>
        moveParticipant(tx, { ...claim, participantId }, deps.rosterFullMax, deps.clock.now()),
      );
      // Without a result, an earlier attempt has moved the session, perhaps without the notices. The gateway ends the
      // connection when it sees the end of the session, and the client resumes in the target.
      await Promise.all([
        publishRoomChanged(deps.producer.redis, claim.roomId, moved?.version ?? null),
        publishRoomChanged(deps.producer.redis, (claim.input as MoveInput).roomId, null),
        deps.producer.wakeDeliveries(moved?.deliveries ?? []),
      ]);
    },
  },
  // The gateway ends the media of the old session. These steps do if it was killed.
  CLOSE_RELAYS_STEP,
  CHECK_MEDIA_STEP,
];

/** Continues the session of a participant in another room. */
export const PARTICIPANT_MOVE: CleanUpKind = {
  steps: STEPS,
  // Of its own, so that many moves do not delay the clean-ups.
  slots: { concurrency: CONCURRENCY_PER_WORKER },
  // Environments take turns.
  isLong: true,
};
