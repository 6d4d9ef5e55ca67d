import { setTimeout as delay } from 'node:timers/promises';
import { INSTANCE_DEAD_MS } from '@callplane/core';
import {
  assertLease,
  endParticipantPresence,
  isParticipantHeld,
  mediaPlacesOfParticipant,
  sessionsAmong,
  touchSessions,
} from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import { endMediaSessions, removeFeedsOf } from '../../media/media-clean-up.js';
import {
  writeLeft,
  CLEAN_UP_SLOTS,
  type CleanUpKind,
  type CleanUpStep,
  CHECK_MEDIA_STEP,
  CLOSE_RELAYS_STEP,
  participantOf,
} from '../shared-steps.js';

/** How long the signaling instance may take to close the connection, and the interval between checks. */
const LET_GO_WITHIN_MS = 2000;
const LOOK_EVERY_MS = 50;

const STEPS: readonly CleanUpStep[] = [
  {
    name: 'notify the signaling instances',
    async run(deps, claim) {
      // Gateways read the sessions with a new version. The request wrote one, unless its process died before that.
      const version = await touchSessions(deps.database.sql, participantOf(claim));
      if (version !== null) await publishRoomChanged(deps.producer.redis, claim.roomId, version);
    },
  },
  {
    // Needs no signaling instance. After this step no participant receives its media any more, unless the media server
    // was unreachable.
    name: 'remove the published tracks',
    async run(deps, claim, { note }) {
      const which = (sessionIds: readonly string[]) => sessionsAmong(deps.database.sql, sessionIds, claim);
      note({ feedsRemoved: await removeFeedsOf(deps, claim.roomId, which) });
    },
  },
  {
    // Without this step, the participant would still receive media: the previous step removes only its own feeds.
    name: 'close the connection',
    async run(deps, claim, { note }) {
      const limits = { graceMs: deps.graceMs, instanceDeadMs: INSTANCE_DEAD_MS };
      const until = performance.now() + LET_GO_WITHIN_MS;
      while (await isParticipantHeld(deps.database.sql, participantOf(claim), limits)) {
        if (performance.now() > until) throw new Error(`a signaling instance still holds ${participantOf(claim)}`);
        await delay(LOOK_EVERY_MS);
      }
      // A gateway that was killed, or has handed the session over, has not ended the media.
      const places = await mediaPlacesOfParticipant(deps.database.sql, participantOf(claim));
      if (places.length > 0) note({ mediaEnded: await endMediaSessions(deps, places) });
    },
  },
  {
    name: 'end the session',
    async run(deps, claim) {
      const now = deps.clock.now();
      const { ended, deliveries } = await deps.database.transaction(async (tx) => {
        await assertLease(tx, claim);
        const sessions = await endParticipantPresence(tx, participantOf(claim), 'removed', now);
        return { ended: sessions, deliveries: await writeLeft(tx, claim, sessions, 'removed', now) };
      });
      await deps.producer.wakeDeliveries(deliveries);
      // Without a session, an earlier attempt has ended it, perhaps without a notice.
      await publishRoomChanged(deps.producer.redis, claim.roomId, ended[0]?.version ?? null);
    },
  },
  CLOSE_RELAYS_STEP,
  CHECK_MEDIA_STEP,
];

/** Disconnects a participant and blocks its identity. */
export const PARTICIPANT_REMOVE: CleanUpKind = {
  steps: STEPS,
  slots: CLEAN_UP_SLOTS,
  isLong: false,
};
