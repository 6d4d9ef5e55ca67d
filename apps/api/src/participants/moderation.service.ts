import { PublicError, type ParticipantState, type Permission, type Tenant, type TrackIdentity } from '@callplane/core';
import {
  muteTrack,
  roomExists,
  updateParticipant,
  type Moderated,
  type ModerationRefusal,
  type ParticipantPatch,
} from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Deps } from '../deps.js';

type ModerationDeps = Pick<Deps, 'database' | 'clock' | 'producer'>;

/** Changes a participant. A running call follows as soon as its gateway gets the notice. */
export async function changeParticipant(
  deps: ModerationDeps,
  tenant: Tenant,
  { roomId, participantId }: { roomId: string; participantId: string },
  patch: ParticipantPatch,
): Promise<{ participant: ParticipantState; permissions: Permission[] }> {
  const update = await updateParticipant(deps.database, tenant, roomId, participantId, patch, deps.clock.now());
  if (update.outcome !== 'updated') throw await refusal(deps, tenant, roomId, update.outcome);
  announce(deps, roomId, update);
  return update;
}

/** Mutes a track for everyone. Its publisher may unmute it. */
export async function mutePublishedTrack(
  deps: ModerationDeps,
  tenant: Tenant,
  { roomId, participantId, trackId }: { roomId: string; participantId: string; trackId: string },
): Promise<TrackIdentity> {
  const mute = await muteTrack(deps.database, tenant, roomId, participantId, trackId, deps.clock.now());
  if (mute.outcome === 'no_track') throw new PublicError('TRACK_NOT_FOUND');
  if (mute.outcome !== 'muted') throw await refusal(deps, tenant, roomId, mute.outcome);
  announce(deps, roomId, mute);
  return mute.track;
}

/** After the commit. The request does not wait: gateways find a change without a notice at their next resync. */
function announce({ producer }: ModerationDeps, roomId: string, { version, deliveries }: Moderated): void {
  if (version !== null) void publishRoomChanged(producer.redis, roomId, version);
  void producer.wakeDeliveries(deliveries);
}

async function refusal(
  { database }: ModerationDeps,
  tenant: Tenant,
  roomId: string,
  outcome: ModerationRefusal,
): Promise<PublicError> {
  switch (outcome) {
    case 'removed':
      return new PublicError('PARTICIPANT_REMOVED');
    case 'room_ended':
      return new PublicError('ROOM_ENDED');
    case 'not_found': {
      const exists = await roomExists(database.prisma, tenant, roomId);
      return new PublicError(exists ? 'PARTICIPANT_NOT_FOUND' : 'ROOM_NOT_FOUND');
    }
  }
}
