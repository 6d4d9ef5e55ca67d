import {
  PARTICIPANT_NAME_LENGTH_MAX,
  presentParticipant,
  presentTrack,
  PublicError,
  type Tenant,
} from '@callplane/core';
import {
  admitParticipant,
  muteTrack,
  updateParticipant,
  type Moderated,
  type ModerationRefusal,
  type ParticipantUpdate,
} from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineRoute, tagged, type Route } from '../http/route.js';
import { metadataObject, namedObject, pathId, trimmedText } from '../http/schemas.js';
import {
  effectivePermissions,
  participantNotFound,
  ParticipantPath,
  permissionsGiven,
  StoredParticipantSchema,
  trackFields,
} from './participants.routes.js';

const UpdateParticipantBody = namedObject('UpdateParticipant', {
  name: Type.Optional(trimmedText(PARTICIPANT_NAME_LENGTH_MAX, 'Name of the participant.')),
  metadata: Type.Optional(metadataObject('Replaces the metadata.', {})),
  permissions: Type.Optional({
    ...permissionsGiven,
    description: 'All permissions of the participant from now on. They override its tokens. Must include `room:join`.',
  }),
});

const UpdatedParticipantSchema = namedObject('UpdatedParticipant', {
  ...StoredParticipantSchema.properties,
  permissions: effectivePermissions,
});

const TrackPath = Type.Object({
  ...ParticipantPath.properties,
  trackId: pathId('Track that the participant publishes at present.'),
});

const MutedTrackSchema = namedObject('MutedTrack', {
  ...trackFields,
  muted: Type.Boolean({ description: 'Always true.' }),
});

export function moderationRoutes(deps: Deps): Route[] {
  return tagged('Participants', [
    defineRoute({
      method: 'patch',
      path: '/v1/rooms/{roomId}/participants/{participantId}',
      operationId: 'updateParticipant',
      summary: 'Change a participant',
      description:
        'Changes the given fields, also in a running call, and writes `participant.updated`. Tracks that the ' +
        'participant may no longer publish are unpublished. New permissions take effect without a new token, and stay ' +
        'for later joins. Works before the first join too. A request that changes nothing writes no event.',
      scope: 'participants:update',
      params: ParticipantPath,
      body: UpdateParticipantBody,
      responses: { 200: { description: 'The participant.', schema: UpdatedParticipantSchema } },
      errors: ['ROOM_ENDED', 'PARTICIPANT_REMOVED', 'PARTICIPANT_MOVED'],
      async handle({ caller, params, body }) {
        const { roomId, participantId } = params;
        const update = await updateParticipant(deps.database, caller, roomId, participantId, body, deps.clock.now());
        return answerUpdate(deps, caller, roomId, update);
      },
    }),
    defineRoute({
      method: 'post',
      path: '/v1/rooms/{roomId}/participants/{participantId}/admit',
      operationId: 'admitParticipant',
      summary: 'Let a participant in',
      description:
        'Lets a participant out of the lobby into the room, within a second and without a new join, with its own ' +
        'permissions, and writes `participant.admitted`. It never waits again. Works before the first join too. ' +
        'Admitting a participant that need not wait changes nothing. To refuse one, remove it.',
      scope: 'participants:update',
      params: ParticipantPath,
      responses: { 200: { description: 'The participant.', schema: UpdatedParticipantSchema } },
      errors: ['ROOM_ENDED', 'ROOM_FULL', 'PARTICIPANT_REMOVED'],
      async handle({ caller, params }) {
        const { roomId, participantId } = params;
        const admission = await admitParticipant(deps.database, caller, roomId, participantId, deps.clock.now());
        if (admission.outcome === 'room_full') throw new PublicError('ROOM_FULL');
        return answerUpdate(deps, caller, roomId, admission);
      },
    }),
    defineRoute({
      method: 'post',
      path: '/v1/rooms/{roomId}/participants/{participantId}/tracks/{trackId}/mute',
      operationId: 'muteTrack',
      summary: 'Mute a track',
      description:
        'Mutes a published track for everyone, and writes `track.muted`. The participant may unmute it. To keep it ' +
        'silent, change its permissions. Muting a muted track changes nothing.',
      scope: 'participants:update',
      params: TrackPath,
      responses: { 200: { description: 'The muted track.', schema: MutedTrackSchema } },
      errors: ['ROOM_ENDED', 'PARTICIPANT_REMOVED', 'PARTICIPANT_MOVED'],
      async handle({ caller, params }) {
        const { roomId, participantId, trackId } = params;
        const mute = await muteTrack(deps.database, caller, roomId, participantId, trackId, deps.clock.now());
        if (mute.outcome === 'no_track') throw new PublicError('TRACK_NOT_FOUND');
        if (mute.outcome !== 'muted') return refuse(deps, caller, roomId, mute.outcome);
        announce(deps, roomId, mute);
        return { status: 200, body: { ...presentTrack(mute.track), muted: true } };
      },
    }),
  ]);
}

async function answerUpdate(deps: Deps, tenant: Tenant, roomId: string, update: ParticipantUpdate) {
  if (update.outcome !== 'updated') return refuse(deps, tenant, roomId, update.outcome);
  announce(deps, roomId, update);
  const { participant, permissions } = update;
  return { status: 200 as const, body: { ...presentParticipant(participant, deps.clock.now()), permissions } };
}

/** After the commit. The request does not wait: gateways find a change without a notice at their next resync. */
export function announce(
  { producer }: Pick<Deps, 'producer'>,
  roomId: string,
  { version, deliveries }: Moderated,
): void {
  if (version !== null) void publishRoomChanged(producer.redis, roomId, version);
  void producer.wakeDeliveries(deliveries);
}

export async function refuse(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  roomId: string,
  outcome: ModerationRefusal,
): Promise<never> {
  switch (outcome) {
    case 'removed':
      throw new PublicError('PARTICIPANT_REMOVED');
    case 'moved':
      throw new PublicError('PARTICIPANT_MOVED');
    case 'room_ended':
      throw new PublicError('ROOM_ENDED');
    case 'not_found':
      return participantNotFound(deps.database, tenant, roomId);
  }
}
