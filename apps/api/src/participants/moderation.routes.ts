import { presentParticipant, presentTrack } from '@callplane/core';
import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { MutedTrackSchema, TrackPath, UpdatedParticipantSchema, UpdateParticipantBody } from './moderation.schemas.js';
import { changeParticipant, mutePublishedTrack } from './moderation.service.js';
import { ParticipantPath } from './participants.schemas.js';

export function moderationRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'patch',
      path: '/v1/rooms/{roomId}/participants/{participantId}',
      operationId: 'updateParticipant',
      summary: 'Change a participant',
      description:
        'Changes the given fields, also in a running call, and writes `participant.updated`. Tracks that the ' +
        'participant may no longer publish are unpublished. New permissions take effect without a new token, and stay ' +
        'for later joins. Works before the first join too. A request that changes nothing writes no event.',
      tag: 'Participants',
      scope: 'participants:update',
      params: ParticipantPath,
      body: UpdateParticipantBody,
      responses: { 200: { description: 'The participant.', schema: UpdatedParticipantSchema } },
      errors: ['ROOM_NOT_FOUND', 'PARTICIPANT_NOT_FOUND', 'ROOM_ENDED', 'PARTICIPANT_REMOVED'],
      async handle({ caller, params, body }) {
        const { participant, permissions } = await changeParticipant(deps, caller, params, body);
        return { status: 200, body: { ...presentParticipant(participant, deps.clock.now()), permissions } };
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
      tag: 'Participants',
      scope: 'participants:update',
      params: TrackPath,
      responses: { 200: { description: 'The muted track.', schema: MutedTrackSchema } },
      errors: ['ROOM_NOT_FOUND', 'PARTICIPANT_NOT_FOUND', 'TRACK_NOT_FOUND', 'ROOM_ENDED', 'PARTICIPANT_REMOVED'],
      async handle({ caller, params }) {
        const track = await mutePublishedTrack(deps, caller, params);
        return { status: 200, body: { ...presentTrack(track), muted: true } };
      },
    }),
  ];
}
