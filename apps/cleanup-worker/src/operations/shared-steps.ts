import {
  mediaPlacesOfParticipant,
  sessionsAmong,
  findRoom,
  writeSessionsEnded,
  type ClaimedOperation,
  type DueEndpoint,
  type TypedSql,
} from '@callplane/db';
import {
  type EndedSession,
  type RoomState,
  type SessionEndReason,
  type Tenant,
  CONCURRENCY_PER_WORKER,
} from '@callplane/core';
import type { Kind, Slots, Step } from '@callplane/operations';
import { destroyMediaRoom, endMediaSessions, removeFeedsOf } from '../media/media-clean-up.js';
import type { Deps } from '../deps.js';

export type CleanUpKind = Kind<Deps>;
export type CleanUpStep = Step<
  Pick<Deps, 'database' | 'clock' | 'producer' | 'logger' | 'media' | 'relays' | 'graceMs' | 'rosterFullMax'>
>;

/** The contract defines the concurrency of clean-ups per worker process, so all of them share these slots. */
export const CLEAN_UP_SLOTS: Slots = { concurrency: CONCURRENCY_PER_WORKER };

/**
 * Runs after the sessions have ended, so that an unresponsive TURN server delays only the outcome of the operation. If
 * a server is `down`, it runs no coturn and relays nothing. If it is `unreachable`, it may still relay, so the operation
 * is tried again.
 */
export const CLOSE_RELAYS_STEP: CleanUpStep = {
  name: 'close the relays',
  async run(deps, claim, { note }) {
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
 * machine that never comes back would keep its rooms open. The backoff puts it at least 155 s after the first
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
export const CHECK_MEDIA_STEP: CleanUpStep = {
  name: 'check that no media flows',
  async run(deps, claim, { note }) {
    const participant = claim.participantId;
    const mediaCheck =
      participant === null
        ? await destroyMediaRoom(deps, claim.roomId, 0)
        : await removeFeedsOf(deps, claim.roomId, (ids) => sessionsAmong(deps.database.sql, ids, claim), 0);
    // The streams that the participant receives belong to feeds of others.
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

export function participantOf({ id, participantId }: ClaimedOperation): string {
  if (participantId === null) throw new Error(`${id} has no participant`);
  return participantId;
}

interface CleanUpSubject extends Tenant {
  roomId: string;
}

/**
 * Writes the events of sessions that have just ended: their tracks are unpublished, their participants have left.
 * Call it last in the transaction.
 */
export async function writeLeft(
  tx: TypedSql,
  subject: CleanUpSubject,
  ended: readonly EndedSession[],
  reason: SessionEndReason,
  now: Date,
): Promise<DueEndpoint[]> {
  if (ended.length === 0) return [];
  return writeSessionsEnded(tx, subject, await roomOf(tx, subject), ended, reason, now);
}

async function roomOf(tx: TypedSql, subject: CleanUpSubject): Promise<RoomState> {
  const room = await findRoom(tx, subject, subject.roomId);
  if (room === null) throw new Error(`no room ${subject.roomId}`);
  return room;
}
