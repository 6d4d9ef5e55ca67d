import {
  presentRecording,
  PublicError,
  RECORDING_LINK_SECONDS,
  RECORDING_STATUSES,
  recordingFileKey,
} from '@callplane/core';
import { acceptRecordingDeletion, findRecording, listRecordings } from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { idOf } from '../http/cursor.js';
import { listRoute } from '../http/list-route.js';
import { defineRoute, tagged, type Route } from '../http/route.js';
import { oneOf, pathId } from '../http/schemas.js';
import { answerOperation, OPERATION_ANSWERS } from '../operations/operations.js';
import { requireRoom, RoomPath } from '../rooms/rooms.routes.js';
import { fileLink } from './file-links.js';
import { LinkBody, LinkSchema, RecordingFilePath, RecordingPath, RecordingSchema } from './recordings.schemas.js';
import { startRoute } from './start-recording.js';
import { stopRecording } from './stop-recording.js';

const status = Type.Optional(oneOf(RECORDING_STATUSES));

export function recordingRoutes(deps: Deps): Route[] {
  const list = {
    scope: 'recordings:read',
    position: { id: idOf('rec') },
    item: RecordingSchema,
    items: 'recordings',
    present: presentRecording,
  } as const;
  return tagged('Recordings', [
    startRoute(deps),
    listRoute(deps, {
      ...list,
      path: '/v1/rooms/{roomId}/recordings',
      operationId: 'listRoomRecordings',
      summary: 'List the recordings of a room, newest first',
      params: RoomPath,
      filters: { status },
      errors: ['ROOM_NOT_FOUND'],
      read: ({ caller, params: { roomId }, query: { status = null } }, part) =>
        listRecordings(deps.reads.sql, caller, { roomId, status, ...part }),
      onEmpty: ({ caller, params }) => requireRoom(deps.reads, caller, params.roomId),
    }),
    listRoute(deps, {
      ...list,
      path: '/v1/recordings',
      operationId: 'listRecordings',
      summary: 'List recordings, newest first',
      filters: { status, roomId: Type.Optional(pathId('Returns only recordings of this room.')) },
      read: ({ caller, query: { roomId = null, status = null } }, part) =>
        listRecordings(deps.reads.sql, caller, { roomId, status, ...part }),
    }),
    defineRoute({
      method: 'get',
      path: '/v1/recordings/{recordingId}',
      operationId: 'readRecording',
      summary: 'Read a recording',
      scope: 'recordings:read',
      params: RecordingPath,
      responses: { 200: { description: 'The recording.', schema: RecordingSchema } },
      errors: ['RECORDING_NOT_FOUND'],
      async handle({ caller, params }) {
        const recording = await findRecording(deps.reads.sql, caller, params.recordingId);
        if (recording === null) throw new PublicError('RECORDING_NOT_FOUND');
        return { status: 200, body: presentRecording(recording) };
      },
    }),
    defineRoute({
      method: 'post',
      path: '/v1/recordings/{recordingId}/stop',
      operationId: 'stopRecording',
      summary: 'Stop a recording',
      description:
        'Ends the recording, and makes its files as a durable operation. A recording that has ended stays as it is. ' +
        'The end of a room stops its recordings as well.',
      scope: 'recordings:write',
      params: RecordingPath,
      responses: { 202: { description: 'The recording.', schema: RecordingSchema } },
      errors: ['RECORDING_NOT_FOUND'],
      async handle({ caller, params }) {
        return { status: 202, body: presentRecording(await stopRecording(deps, caller, params.recordingId)) };
      },
    }),
    defineRoute({
      method: 'delete',
      path: '/v1/recordings/{recordingId}',
      operationId: 'deleteRecording',
      summary: 'Delete a recording and its files',
      description: 'Reads no longer find the recording from then on. A durable operation deletes its files.',
      scope: 'recordings:write',
      prefers: true,
      params: RecordingPath,
      responses: OPERATION_ANSWERS,
      errors: ['RECORDING_NOT_FOUND', 'RECORDING_ACTIVE'],
      async handle(call) {
        const { caller, params } = call;
        const deleted = await acceptRecordingDeletion(deps.database, caller, params.recordingId, deps.clock.now());
        if (deleted === null) throw new PublicError('RECORDING_NOT_FOUND');
        if (deleted === 'running') throw new PublicError('RECORDING_ACTIVE');
        return answerOperation(deps, null, deleted, call);
      },
    }),
    defineRoute({
      method: 'post',
      path: '/v1/recordings/{recordingId}/files/{fileId}/url',
      operationId: 'createRecordingLink',
      summary: 'Create a link to a file',
      description: 'The link is for one file, and needs no API key.',
      scope: 'recordings:read',
      params: RecordingFilePath,
      body: Type.Optional(LinkBody),
      responses: { 200: { description: 'The link.', schema: LinkSchema } },
      errors: ['RECORDING_NOT_FOUND'],
      async handle({ caller, params, body, response: { req } }) {
        const recording = await findRecording(deps.database.sql, caller, params.recordingId);
        const file = recording?.files.find(({ id }) => id === params.fileId);
        if (file === undefined) throw new PublicError('RECORDING_NOT_FOUND');
        const { expiresInSeconds = RECORDING_LINK_SECONDS.default } = body;
        const expiresAt = new Date(deps.clock.now().getTime() + expiresInSeconds * 1000);
        const name = recordingFileKey(params.recordingId, file);
        const url =
          (await deps.recordings?.link(name, file.contentType, expiresInSeconds)) ??
          `${req.protocol}://${req.host}${fileLink(deps.masterKeys, name, expiresAt)}`;
        return { status: 200, body: { url, expiresAt: expiresAt.toISOString() } };
      },
    }),
  ]);
}
