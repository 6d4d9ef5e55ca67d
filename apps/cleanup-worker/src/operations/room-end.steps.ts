import { assertLease, endRoomPresence, markRoomEnded, settleCompleted } from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Step } from '../deps.js';
import { CHECK_MEDIA_STEP } from '../media/check-media.step.js';
import { destroyMediaRoom } from '../media/media-clean-up.js';
import { CLOSE_RELAYS_STEP } from '../relays/close-relays.step.js';
import { writeLeft, writeRoomEnded } from './events.js';

export const ROOM_END_STEPS: readonly Step[] = [
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
    // Needs no signaling instance. After this step no media flows any more, unless the media server was unreachable.
    name: 'destroy the media room',
    async run(deps, claim, note) {
      note({ media: await destroyMediaRoom(deps, claim.roomId) });
    },
  },
  {
    name: 'end sessions',
    async run(deps, claim, note) {
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
  {
    name: 'mark the room ended',
    async run(deps, claim) {
      const now = deps.clock.now();
      const deliveries = await deps.database.transaction(async (tx) => {
        await settleCompleted(tx, claim, now);
        await markRoomEnded(tx, claim.roomId, now);
        return writeRoomEnded(tx, claim, now);
      });
      await deps.producer.wakeDeliveries(deliveries);
    },
  },
];
