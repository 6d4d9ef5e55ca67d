import { setTimeout as delay } from 'node:timers/promises';
import {
  INSTANCE_DEAD_MS,
  operationFailed,
  roomEnded,
  type EndedSession,
  type OperationKind,
  type OperationState,
  type RoomState,
  type SessionEndReason,
  type Tenant,
} from '@callplane/core';
import {
  assertLease,
  type ClaimedOperation,
  type DueEndpoint,
  endParticipantPresence,
  endRoomPresence,
  findParticipants,
  findRoom,
  isParticipantHeld,
  mediaPlacesOfParticipant,
  sessionsAmong,
  settleOperation,
  touchSessions,
  type TypedSql,
  writeEvents,
  writeSessionsEnded,
} from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Step } from '../deps.js';
import { destroyMediaRoom, endMediaSessions, removeFeedsOf } from '../media/media-clean-up.js';

/**
 * Runs after the sessions have ended, so that an unresponsive TURN server delays only the outcome of the operation. If
 * a server is `down`, it runs no coturn and relays nothing. If it is `unreachable`, it may still relay, so the operation
 * is tried again.
 */
const CLOSE_RELAYS_STEP: Step = {
  name: 'close the relays',
  async run(deps, claim, note) {
    if (!deps.relays.isConfigured) return;
    const outcomes = await deps.relays.close('operation', (sessionIds) =>
      sessionsAmong(deps.database.sql, sessionIds, claim),
    );
    note({ relaysClosed: outcomes.reduce((sum, { closed }) => sum + closed, 0) });
    const unreachable = outcomes.find(({ state }) => state === 'unreachable');
    if (unreachable !== undefined) throw unreachable.error ?? new Error(unreachable.address);
  },
};

/**
 * From this attempt of a run on, an operation completes although the worker cannot reach the media server: otherwise a
 * machine that was lost for ever would keep rooms open for ever. The backoff puts it at least 155 s after the first
 * attempt. By then Janus has ended the peer connections of every gateway that it does not hear from (after
 * `session_timeout` and `reclaim_session_timeout`, at most 60 s together in infra/janus), and every gateway that reads
 * PostgreSQL has ended its own. Media can flow on only if two networks are broken at once: from the server to all
 * cleanup workers, and from a gateway that still reaches it to PostgreSQL.
 */
const COMPLETE_WITHOUT_SERVER_FROM_ATTEMPT = 4;

/**
 * Fails the attempt while the media server is unreachable, because it may still relay media. Runs after the sessions
 * have ended, so that an unreachable media server delays only the outcome of the operation.
 *
 * Cleans up once more. A gateway that had not yet read the room's new state may have created the room or a feed again
 * after the first clean-up, or the server may have been unreachable then. The first clean-up has already waited for a
 * disconnected server, so this one waits 0 ms.
 */
const CHECK_MEDIA_STEP: Step = {
  name: 'check that no media flows',
  async run(deps, claim, note) {
    const participant = claim.participantId;
    const mediaCheck =
      participant === null
        ? await destroyMediaRoom(deps, claim.roomId, 0)
        : await removeFeedsOf(deps, claim.roomId, (ids) => sessionsAmong(deps.database.sql, ids, claim), 0);
    // What the participant receives belongs to no feed of its own.
    const sessionsCheck =
      participant === null
        ? 0
        : await endMediaSessions(deps, await mediaPlacesOfParticipant(deps.database.sql, participant), 0);
    note({ mediaCheck, sessionsCheck });
    const isUnreachable = mediaCheck === 'unreachable' || sessionsCheck === 'unreachable';
    if (isUnreachable && claim.runAttempts < COMPLETE_WITHOUT_SERVER_FROM_ATTEMPT) {
      throw new Error(`the media server of ${claim.roomId} is unreachable`);
    }
  },
};

const ROOM_END_STEPS: readonly Step[] = [
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
        await settleOperation(tx, claim, { status: 'completed', now });
        return writeRoomEnded(tx, claim, now);
      });
      await deps.producer.wakeDeliveries(deliveries);
    },
  },
];

/** How long the signaling instance may take to close the connection, and the interval between checks. */
const LET_GO_WITHIN_MS = 2000;
const LOOK_EVERY_MS = 50;

const PARTICIPANT_REMOVE_STEPS: readonly Step[] = [
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
    async run(deps, claim, note) {
      const which = (sessionIds: readonly string[]) => sessionsAmong(deps.database.sql, sessionIds, claim);
      note({ feedsRemoved: await removeFeedsOf(deps, claim.roomId, which) });
    },
  },
  {
    // Without this step, the participant would still receive media: the previous step removes only its own feeds.
    name: 'close the connection',
    async run(deps, claim, note) {
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
  {
    name: 'complete the removal',
    async run(deps, claim) {
      await settleOperation(deps.database.sql, claim, { status: 'completed', now: deps.clock.now() });
    },
  },
];

function participantOf({ id, participantId }: ClaimedOperation): string {
  if (participantId === null) throw new Error(`${id} has no participant`);
  return participantId;
}

/**
 * The steps of each operation kind, in order. The last one settles the operation as completed. Accepting the operation
 * already prevents new tokens and joins, so no step has to.
 */
export const STEPS: Record<OperationKind, readonly Step[]> = {
  'room.end': ROOM_END_STEPS,
  'participant.remove': PARTICIPANT_REMOVE_STEPS,
};

/** The room, and for a removal the participant, that an event of a clean-up describes. */
interface CleanUpSubject extends Tenant {
  roomId: string;
  participantId: string | null;
}

/**
 * Writes the events of sessions that have just ended: their tracks are unpublished, their participants have left.
 * Call it last in the transaction.
 */
async function writeLeft(
  tx: TypedSql,
  subject: CleanUpSubject,
  ended: readonly EndedSession[],
  reason: SessionEndReason,
  now: Date,
): Promise<DueEndpoint[]> {
  if (ended.length === 0) return [];
  return writeSessionsEnded(tx, subject, await roomOf(tx, subject), ended, reason, now);
}

async function writeRoomEnded(tx: TypedSql, subject: CleanUpSubject, now: Date): Promise<DueEndpoint[]> {
  const room = await roomOf(tx, subject);
  return (await writeEvents(tx, [roomEnded({ tenant: subject, room, now })])).deliveries;
}

export async function writeOperationFailed(
  tx: TypedSql,
  subject: CleanUpSubject,
  operation: OperationState,
  now: Date,
): Promise<DueEndpoint[]> {
  const { roomId, participantId } = subject;
  const room = await roomOf(tx, subject);
  const [participant = null] =
    participantId === null ? [] : await findParticipants(tx, [{ tenant: subject, roomId, id: participantId }]);
  const event = operationFailed({ tenant: subject, room, now }, operation, participant);
  return (await writeEvents(tx, [event])).deliveries;
}

async function roomOf(tx: TypedSql, subject: CleanUpSubject): Promise<RoomState> {
  const room = await findRoom(tx, subject, subject.roomId);
  if (room === null) throw new Error(`no room ${subject.roomId}`);
  return room;
}
