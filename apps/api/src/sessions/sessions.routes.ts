import { presentSessionRecord } from '@callplane/core';
import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { ParticipantPath } from '../participants/participants.schemas.js';
import { RoomPath } from '../rooms/rooms.schemas.js';
import { ListSessionsQuery, PARTICIPANT_SESSION_LIST, SESSION_LIST, SessionPage } from './sessions.schemas.js';
import { pageOfSessions } from './sessions.service.js';

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
