import { PERMISSIONS, QUALITY_LEVELS, SESSION_END_REASONS, TRACK_KINDS, TRACK_SOURCES } from '@callplane/core';
import { Type } from 'typebox';
import { defineList, idOf } from '../http/cursor.js';
import { oneOf, orNull, page, pageQuery, timestamp } from '../http/schemas.js';

const seconds = (description: string) => Type.Integer({ description });

const QualitySchema = Type.Object(
  {
    worst: oneOf(QUALITY_LEVELS, 'The worst level that lasted for at least a second.'),
    relay: Type.Boolean({ description: 'Whether media went through a TURN server.' }),
    seconds: Type.Object(
      {
        good: seconds('Seconds with good quality.'),
        fair: seconds('Seconds with fair quality.'),
        poor: seconds('Seconds with poor quality.'),
        lost: seconds('Seconds without a connection.'),
        relayed: seconds('Seconds among these with media through a TURN server.'),
      },
      { additionalProperties: false },
    ),
  },
  { title: 'SessionQuality', additionalProperties: false },
);

const SessionSchema = Type.Object(
  {
    id: Type.String({ description: 'Session identifier, `sess_…`.' }),
    roomId: Type.String(),
    participantId: Type.String(),
    joinedAt: timestamp('When the session began.'),
    leftAt: orNull(timestamp('When the session ended.')),
    reason: orNull(oneOf(SESSION_END_REASONS, 'Why the session ended.')),
    permissions: Type.Array(oneOf(PERMISSIONS)),
    tracks: Type.Array(
      Type.Object(
        {
          trackId: Type.String(),
          kind: oneOf(TRACK_KINDS),
          source: oneOf(TRACK_SOURCES),
          publishedAt: timestamp('When the track was published.'),
          unpublishedAt: orNull(timestamp('When its publication ended. Null while it is published.')),
        },
        { title: 'SessionTrack', additionalProperties: false },
      ),
      { description: 'The tracks that the session publishes, and the latest 100 that it has published.' },
    ),
    quality: orNull(QualitySchema),
  },
  { title: 'Session', additionalProperties: false },
);

export const ListSessionsQuery = Type.Object(pageQuery());
export const SESSION_LIST = defineList('sessions', { id: idOf('sess') });
export const PARTICIPANT_SESSION_LIST = defineList('participant-sessions', { id: idOf('sess') });

export const SessionPage = page('SessionPage', SessionSchema);
