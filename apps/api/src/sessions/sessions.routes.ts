import {
  PERMISSIONS,
  presentSessionRecord,
  PublicError,
  QUALITY_LEVELS,
  SESSION_END_REASONS,
  TRACK_KINDS,
  TRACK_SOURCES,
  type SessionRecord,
  type Tenant,
} from '@callplane/core';
import { listSessions, roomExists } from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineList, idOf, type Page, type PageCursor } from '../http/cursor.js';
import { defineRoute, type Route } from '../http/route.js';
import { oneOf, orNull, page, pageById, pageQuery, timestamp } from '../http/schemas.js';
import { ParticipantPath } from '../participants/participants.routes.js';
import { RoomPath } from '../rooms/rooms.routes.js';

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

const ListSessionsQuery = Type.Object(pageQuery());
const SESSION_LIST = defineList('sessions', { id: idOf('sess') });
const PARTICIPANT_SESSION_LIST = defineList('participant-sessions', { id: idOf('sess') });

const SessionPage = page('SessionPage', SessionSchema);

export function sessionRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}/sessions',
      operationId: 'listRoomSessions',
      summary: 'List the sessions of a room, newest first',
      description: 'A session is one stay of a participant in the room, with its tracks and its quality.',
      tag: 'Rooms',
      scope: 'participants:read',
      params: RoomPath,
      query: ListSessionsQuery,
      list: SESSION_LIST,
      responses: { 200: { description: 'One page of sessions.', schema: SessionPage } },
      errors: ['ROOM_NOT_FOUND'],
      async handle({ caller, params, query, cursor }) {
        const of = { roomId: params.roomId, participantId: null };
        const { rows, nextCursor } = await pageOfSessions(deps, caller, of, query, cursor);
        return { status: 200, body: { data: rows.map(presentSessionRecord), nextCursor } };
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}/participants/{participantId}/sessions',
      operationId: 'listParticipantSessions',
      summary: 'List the sessions of a participant, newest first',
      tag: 'Participants',
      scope: 'participants:read',
      params: ParticipantPath,
      query: ListSessionsQuery,
      list: PARTICIPANT_SESSION_LIST,
      responses: { 200: { description: 'One page of sessions.', schema: SessionPage } },
      errors: ['ROOM_NOT_FOUND', 'PARTICIPANT_NOT_FOUND'],
      async handle({ caller, params, query, cursor }) {
        const { rows, nextCursor } = await pageOfSessions(deps, caller, params, query, cursor);
        return { status: 200, body: { data: rows.map(presentSessionRecord), nextCursor } };
      },
    }),
  ];
}

/** @param of the sessions of a room, or those of one of its participants. */
async function pageOfSessions(
  deps: Pick<Deps, 'database' | 'statements'>,
  tenant: Tenant,
  of: { roomId: string; participantId: string | null },
  query: { limit?: number },
  cursor: PageCursor<{ id: string }>,
): Promise<Page<SessionRecord>> {
  const sessions = await pageById(cursor, query, (part) => listSessions(deps.database.sql, tenant, { ...of, ...part }));
  if (sessions.rows.length === 0) await checkExists(deps, tenant, of);
  return sessions;
}

/** @throws PublicError for the missing resource: the room or the participant. */
async function checkExists(
  { database, statements }: Pick<Deps, 'database' | 'statements'>,
  tenant: Tenant,
  { roomId, participantId }: { roomId: string; participantId: string | null },
): Promise<void> {
  if (participantId !== null && (await statements.findParticipant({ tenant, roomId, id: participantId })) !== null)
    return;
  if (!(await roomExists(database.prisma, tenant, roomId))) throw new PublicError('ROOM_NOT_FOUND');
  if (participantId !== null) throw new PublicError('PARTICIPANT_NOT_FOUND');
}
