import { roomEnded } from '@callplane/core';
import { assertLease, endRoomPresence, markRoomEnded, stopRecordings, writeEvents } from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import { destroyMediaRoom } from '../../media/media-clean-up.js';
import {
  writeLeft,
  CLEAN_UP_SLOTS,
  type CleanUpKind,
  type CleanUpStep,
  CHECK_MEDIA_STEP,
  CLOSE_RELAYS_STEP,
} from '../shared-steps.js';

const STEPS: readonly CleanUpStep[] = [
  {
    // On this notice, each instance reads that the room is ending, and disconnects its participants. An instance that
    // misses the notice reads the room within seconds anyway.
    name: 'notify the signaling instances',
    async run(deps, claim) {
      // The notice has no version, so every instance that still listens reads the room. Instances that have seen the
      // end no longer listen.
      await publishRoomChanged(deps.producer.redis, claim.roomId, null);
    },
  },
  {
    // The agents beside the media servers record no room that is ending. Before the step that destroys the media room, so
    // that recordings end with the media.
    name: 'stop the recordings',
    async run(deps, claim) {
      const { operations, deliveries } = await deps.database.transaction(async (tx) => {
        await assertLease(tx, claim);
        return stopRecordings(tx, claim, claim.roomId, null, deps.clock.now());
      });
      await deps.producer.wakeOperations(operations);
      await deps.producer.wakeDeliveries(deliveries);
    },
  },
  {
    // Needs no signaling instance. After this step no media flows any more, unless the media server was unreachable.
    name: 'destroy the media room',
    async run(deps, claim, { note }) {
      note({ media: await destroyMediaRoom(deps, claim.roomId) });
    },
  },
  {
    name: 'end sessions',
    async run(deps, claim, { note }) {
      let ended = 0;
      for (let batchSize = 1; batchSize > 0;) {
        const now = deps.clock.now();
        const batch = await deps.database.transaction(async (tx) => {
          await assertLease(tx, claim);
          const presence = await endRoomPresence(tx, claim.roomId, now);
          const deliveries = await writeLeft(tx, claim, presence.ended, 'room_ended', now);
          return { batchSize: presence.left, ended: presence.ended.length, deliveries };
        });
        ({ batchSize } = batch);
        ended += batch.ended;
        await deps.producer.wakeDeliveries(batch.deliveries);
      }
      note({ sessionsEnded: ended });
    },
  },
  CLOSE_RELAYS_STEP,
  CHECK_MEDIA_STEP,
];

/** Ends a room for everyone. */
export const ROOM_END: CleanUpKind = {
  steps: STEPS,
  async complete(tx, claim, now) {
    const room = await markRoomEnded(tx, claim, claim.roomId, now);
    if (room === null) throw new Error(`${claim.roomId} is not ending`);
    return (await writeEvents(tx, [roomEnded({ tenant: claim, room, now })])).deliveries;
  },
  slots: CLEAN_UP_SLOTS,
  isLong: false,
};
