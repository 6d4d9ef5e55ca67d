import { setTimeout as delay } from 'node:timers/promises';
import { INSTANCE_DEAD_MS } from '@callplane/core';
import {
  endParticipantPresence,
  isParticipantHeld,
  liveSessionOf,
  settleCompleted,
  type ClaimedOperation,
} from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import { removeFeedsOf } from '../media/media-clean-up.js';
import { wake, writeLeft } from './events.js';
import type { Step } from './steps.js';

/** How long the instance that holds the connection may take to give it up, and how often that is looked at. */
const LET_GO_WITHIN_MS = 2000;
const LOOK_EVERY_MS = 50;

export const PARTICIPANT_REMOVE_STEPS: readonly Step[] = [
  {
    name: 'tell the signaling instances',
    async run(deps, claim) {
      await publishRoomChanged(deps.producer.redis, claim.roomId);
    },
  },
  {
    // Works without its signaling instance: nobody receives anything of it after this.
    name: 'remove what it publishes',
    async run(deps, claim, note) {
      const sessionId = await liveSessionOf(deps.database.hot, participantOf(claim));
      if (sessionId !== null) note({ feedsRemoved: await removeFeedsOf(deps, claim.roomId, [sessionId]) });
    },
  },
  {
    // It would go on receiving otherwise: a media server ends only what is published.
    name: 'close its connection',
    async run(deps, claim) {
      const limits = { graceMs: deps.graceMs, instanceDeadMs: INSTANCE_DEAD_MS };
      const until = performance.now() + LET_GO_WITHIN_MS;
      while (await isParticipantHeld(deps.database.hot, participantOf(claim), limits)) {
        if (performance.now() > until) throw new Error(`its signaling instance still holds ${participantOf(claim)}`);
        await delay(LOOK_EVERY_MS);
      }
    },
  },
  {
    name: 'end the session',
    async run(deps, claim) {
      const now = deps.clock.now();
      const deliveries = await deps.database.transaction(async (tx) => {
        await settleCompleted(tx, claim, now);
        const ended = await endParticipantPresence(tx, participantOf(claim), 'removed', now);
        return writeLeft(tx, claim, ended, 'removed', now);
      });
      await wake(deps, deliveries);
      await publishRoomChanged(deps.producer.redis, claim.roomId);
    },
  },
];

function participantOf({ id, participantId }: ClaimedOperation): string {
  if (participantId === null) throw new Error(`${id} names no participant`);
  return participantId;
}
