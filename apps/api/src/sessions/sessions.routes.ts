import { PERMISSIONS, presentSessionRecord, QUALITY_LEVELS, SESSION_END_REASONS } from '@callplane/core';
import { listSessions } from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { idOf } from '../http/cursor.js';
import { listRoute } from '../http/list-route.js';
import { tagged, type Route } from '../http/route.js';
import { namedObject, oneOf, orNull, strictObject, timestamp } from '../http/schemas.js';
import { participantNotFound, ParticipantPath, trackFields } from '../participants/participants.routes.js';
import { requireRoom, RoomPath } from '../rooms/rooms.routes.js';

const seconds = (description: string) => Type.Integer({ description });

const QualitySchema = namedObject('SessionQuality', {
  worst: oneOf(QUALITY_LEVELS, 'The worst level that lasted for at least a second.'),
  relay: Type.Boolean({ description: 'Whether media went through a TURN server.' }),
  seconds: strictObject({
    good: seconds('Seconds with good quality.'),
    fair: seconds('Seconds with fair quality.'),
    poor: seconds('Seconds with poor quality.'),
    lost: seconds('Seconds without a connection.'),
    relayed: seconds('Seconds among these with media through a TURN server.'),
  }),
});

const SessionSchema = namedObject('Session', {
  id: Type.String({ description: 'Session identifier, `sess_…`.' }),
  roomId: Type.String(),
  participantId: Type.String(),
  joinedAt: timestamp('When the session began.'),
  leftAt: orNull(timestamp('When the session ended.')),
  reason: orNull(oneOf(SESSION_END_REASONS, 'Why the session ended.')),
  permissions: Type.Array(oneOf(PERMISSIONS)),
  tracks: Type.Array(
    namedObject('SessionTrack', {
      ...trackFields,
      publishedAt: timestamp('When the track was published.'),
      unpublishedAt: orNull(timestamp('When its publication ended. Null while it is published.')),
    }),
    { description: 'The tracks that the session publishes, and the latest 100 that it has published.' },
  ),
  quality: orNull(QualitySchema),
});

export function sessionRoutes(deps: Deps): Route[] {
  const ofRoom = listRoute(deps, {
    path: '/v1/rooms/{roomId}/sessions',
    operationId: 'listRoomSessions',
    summary: 'List the sessions of a room, newest first',
    description: 'A session is one stay of a participant in the room, with its tracks and its quality.',
    scope: 'participants:read',
    params: RoomPath,
    position: { id: idOf('sess') },
    item: SessionSchema,
    items: 'sessions',
    read: ({ caller, params: { roomId } }, part) =>
      listSessions(deps.reads.sql, caller, { roomId, participantId: null, ...part }),
    onEmpty: ({ caller, params }) => requireRoom(deps.reads, caller, params.roomId),
    present: presentSessionRecord,
  });
  const ofParticipant = listRoute(deps, {
    path: '/v1/rooms/{roomId}/participants/{participantId}/sessions',
    operationId: 'listParticipantSessions',
    summary: 'List the sessions of a participant, newest first',
    scope: 'participants:read',
    params: ParticipantPath,
    position: { id: idOf('sess') },
    item: SessionSchema,
    items: 'sessions',
    read: ({ caller, params }, part) => listSessions(deps.reads.sql, caller, { ...params, ...part }),
    async onEmpty({ caller, params: { roomId, participantId } }) {
      const found = await deps.statements.findParticipant({ tenant: caller, roomId, id: participantId });
      if (found === null) await participantNotFound(deps.reads, caller, roomId);
    },
    present: presentSessionRecord,
  });
  return [...tagged('Rooms', [ofRoom]), ...tagged('Participants', [ofParticipant])];
}
