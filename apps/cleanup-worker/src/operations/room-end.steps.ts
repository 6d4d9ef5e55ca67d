import { assertLease, endRoomPresence, markRoomEnded, settleCompleted } from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import { destroyMediaRoom } from '../media/media-clean-up.js';
import { wake, writeLeft, writeRoomEnded } from './events.js';
import type { Step } from './steps.js';

export const ROOM_END_STEPS: readonly Step[] = [
  {
    // They read that it ends and disconnect everybody. Whoever is not told finds it within seconds.
    name: 'tell the signaling instances',
    async run(deps, claim) {
      await publishRoomChanged(deps.producer.redis, claim.roomId);
    },
  },
  {
    // Works without any signaling instance: nothing flows any more after this.
    name: 'destroy the media room',
    async run(deps, claim, note) {
      note({ media: await destroyMediaRoom(deps, claim.roomId) });
    },
  },
  {
    name: 'end sessions',
    async run(deps, claim, note) {
      let ended = 0;
      for (let left = 1; left > 0;) {
        const now = deps.clock.now();
        const batch = await deps.database.transaction(async (tx) => {
          await assertLease(tx, claim);
          const presence = await endRoomPresence(tx, claim.roomId, now);
          const deliveries = await writeLeft(tx, claim, presence.ended, 'room_ended', now);
          return { left: presence.left, ended: presence.ended.length, deliveries };
        });
        ({ left } = batch);
        ended += batch.ended;
        await wake(deps, batch.deliveries);
      }
      note({ sessionsEnded: ended });
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
];
