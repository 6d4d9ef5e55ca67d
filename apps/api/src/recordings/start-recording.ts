import { newId, newRecording, presentRecording } from '@callplane/core';
import { startRecording, stateAtStart, type DueEndpoint, type TypedSql } from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Deps } from '../deps.js';
import { idempotently } from '../http/idempotency.js';
import { contextOf } from '../http/request-context.js';
import { defineRoute, type Reply, type UntaggedRoute } from '../http/route.js';
import { RoomPath } from '../rooms/rooms.routes.js';
import { refusal } from './recordable.js';
import { RecordingSchema, StartRecordingBody } from './recordings.schemas.js';

interface Made {
  id: string;
  startedAt: string;
}

export function startRoute(deps: Deps): UntaggedRoute {
  return defineRoute({
    method: 'post',
    path: '/v1/rooms/{roomId}/recordings',
    operationId: 'startRecording',
    summary: 'Start a recording',
    description:
      'Records until the recording is stopped, its room ends, or its longest duration is over. The files exist once its ' +
      'status is `completed`; the event `recording.completed` says so. A room has at most one composite at a time.',
    scope: 'recordings:write',
    idempotent: true,
    params: RoomPath,
    body: StartRecordingBody,
    responses: { 202: { description: 'The recording.', schema: RecordingSchema } },
    errors: [
      'ROOM_NOT_FOUND',
      'PARTICIPANT_NOT_FOUND',
      'ROOM_ENDED',
      'ROOM_ENCRYPTED',
      'RECORDING_ACTIVE',
      'RECORDING_UNAVAILABLE',
    ],
    async handle({ caller, params: { roomId }, body, bodyAsSent, idempotencyKey, response }) {
      if (deps.recordings === null) throw refusal('no_store');
      let deliveries: DueEndpoint[] = [];
      const start = async (tx: TypedSql): Promise<Made> => {
        const id = newId('recording');
        const outcome = await startRecording(tx, caller, roomId, newRecording(body, id));
        if (typeof outcome === 'string') throw refusal(outcome);
        deliveries = outcome.deliveries;
        return { id, startedAt: outcome.startedAt.toISOString() };
      };
      const answer = ({ id, startedAt }: Made): Reply => {
        contextOf(response).logFields['recordingId'] = id;
        const state = stateAtStart(caller, roomId, newRecording(body, id), new Date(startedAt));
        return { status: 202, body: presentRecording(state) };
      };
      const make = (tx: TypedSql | null) => (tx === null ? deps.database.transaction(start) : start(tx));
      const route = 'POST /v1/rooms/{roomId}/recordings';
      const request = { route, key: idempotencyKey, body: { roomId, body: bodyAsSent } };
      const reply = await idempotently(deps, caller, request, { make, answer });
      void publishRoomChanged(deps.producer.redis, roomId, null);
      void deps.producer.wakeDeliveries(deliveries);
      return reply;
    },
  });
}
