import { PublicError } from '@callplane/core';
import { findRoomMedia } from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineRoute, tagged, type Route } from '../http/route.js';
import { namedObject, oneOf, orNull, timestamp } from '../http/schemas.js';
import { RoomPath } from './rooms.routes.js';

const RoomMediaSchema = namedObject('RoomMedia', {
  nodes: Type.Array(
    namedObject('RoomMediaNode', {
      id: Type.String({ description: 'Name of the media server.' }),
      region: orNull(Type.String()),
      state: orNull(oneOf(['up', 'down'], 'As observed in the last 30 seconds. Null: not observed.')),
      sessions: Type.Integer({ description: 'Sessions of the room on this media server.' }),
    }),
    {
      description:
        'The media servers of the room, its own first. Empty before anybody has joined, and in an ended room.',
    },
  ),
  forwards: Type.Array(
    namedObject('RoomMediaForward', {
      participantId: Type.String({ description: 'The participant whose tracks are forwarded.' }),
      fromNodeId: Type.String(),
      toNodeId: Type.String({ description: 'The media server on which somebody receives them.' }),
      state: oneOf(['opening', 'up', 'closing']),
      streams: Type.Integer({ description: 'Tracks that are forwarded. Zero while it opens.' }),
      createdAt: timestamp('When a gateway opened it.'),
    }),
    { description: 'Feeds that one media server of the room sends to another, newest first, at most 100.' },
  ),
  forwardCount: Type.Integer({ description: 'All forwards of the room.' }),
});

export function roomMediaRoutes(deps: Deps): Route[] {
  return tagged('Rooms', [
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}/media',
      operationId: 'readRoomMedia',
      summary: 'Read the media servers of a room',
      scope: 'rooms:read',
      params: RoomPath,
      responses: { 200: { description: 'The media servers of the room.', schema: RoomMediaSchema } },
      async handle({ caller, params }) {
        const media = await findRoomMedia(deps.reads.sql, caller, params.roomId);
        if (media === null) throw new PublicError('ROOM_NOT_FOUND');
        return { status: 200, body: { ...media } };
      },
    }),
  ]);
}
