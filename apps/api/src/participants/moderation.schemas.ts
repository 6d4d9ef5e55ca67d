import { PARTICIPANT_NAME_LENGTH_MAX, PERMISSIONS, TRACK_KINDS, TRACK_SOURCES } from '@callplane/core';
import { Type } from 'typebox';
import { metadataObject, oneOf, pathId, strictObject, trimmedText } from '../http/schemas.js';
import { ParticipantPath, ParticipantSchema, permissionsGiven } from './participants.schemas.js';

export const UpdateParticipantBody = strictObject(
  {
    name: Type.Optional(trimmedText(PARTICIPANT_NAME_LENGTH_MAX, 'Name of the participant.')),
    metadata: Type.Optional(metadataObject('Replaces the metadata.', {})),
    permissions: Type.Optional({
      ...permissionsGiven,
      description:
        'All permissions of the participant from now on. They go before those of its tokens. Must include `room:join`.',
    }),
  },
  { title: 'UpdateParticipant' },
);

export const UpdatedParticipantSchema = Type.Object(
  {
    ...ParticipantSchema.properties,
    permissions: Type.Array(oneOf(PERMISSIONS), { description: 'All permissions of the participant.' }),
  },
  { title: 'UpdatedParticipant', additionalProperties: false },
);

export const TrackPath = Type.Object({
  ...ParticipantPath.properties,
  trackId: pathId('Track that the participant publishes at present.'),
});

export const MutedTrackSchema = Type.Object(
  {
    trackId: Type.String(),
    kind: oneOf(TRACK_KINDS),
    source: oneOf(TRACK_SOURCES),
    muted: Type.Boolean({ description: 'Always true.' }),
  },
  { title: 'MutedTrack', additionalProperties: false },
);
