import { newId, presentRecording, PublicError, RECORDING_DURATION_SECONDS, type ErrorCode } from '@callplane/core';
import {
  startRecording,
  stateAtStart,
  type DueEndpoint,
  type NewRecording,
  type RecordingRefusal,
  type TypedSql,
} from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Static } from 'typebox';
import type { Deps } from '../deps.js';
import { idempotently } from '../http/idempotency.js';
import { contextOf } from '../http/request-context.js';
import { defineRoute, type Reply, type UntaggedRoute } from '../http/route.js';
import { RoomPath } from '../rooms/rooms.routes.js';
import { RecordingSchema, StartRecordingBody } from './recordings.schemas.js';

type Refusal = RecordingRefusal | 'no_store';

const REFUSALS: Readonly<Record<Refusal, [code: ErrorCode, message?: string]>> = {
  room_not_found: ['ROOM_NOT_FOUND'],
  room_ended: ['ROOM_ENDED'],
  participant_not_found: ['PARTICIPANT_NOT_FOUND'],
  active: ['RECORDING_ACTIVE'],
  no_store: ['RECORDING_UNAVAILABLE', 'The deployment cannot record: its API has no store.'],
  no_recorder: ['RECORDING_UNAVAILABLE', 'The deployment cannot record at present: no recorder with ffmpeg runs.'],
  no_agent: [
    'RECORDING_UNAVAILABLE',
    'The deployment cannot record at present: the media server has no agent that records.',
  ],
};

/** A recorder or an agent that has just started counts a moment later. */
const RETRY_AFTER_SECONDS = '10';

function refusal(reason: Refusal): PublicError {
  const [code, message] = REFUSALS[reason];
  if (message === undefined) return new PublicError(code);
  return new PublicError(code, { message, headers: { 'retry-after': RETRY_AFTER_SECONDS } });
}

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
    errors: ['ROOM_NOT_FOUND', 'PARTICIPANT_NOT_FOUND', 'ROOM_ENDED', 'RECORDING_ACTIVE', 'RECORDING_UNAVAILABLE'],
    async handle({ caller, params: { roomId }, body, bodyAsSent, idempotencyKey, response }) {
      if (deps.recordings === null) throw refusal('no_store');
      let deliveries: DueEndpoint[] = [];
      const make = async (tx: TypedSql): Promise<Made> => {
        const made = { id: newId('recording'), startedAt: deps.clock.now().toISOString() };
        const outcome = await startRecording(tx, caller, roomId, recordingOf(body, made));
        if (typeof outcome === 'string') throw refusal(outcome);
        deliveries = outcome.deliveries;
        return made;
      };
      const answer = (made: Made): Reply => {
        contextOf(response).logFields['recordingId'] = made.id;
        return { status: 202, body: presentRecording(stateAtStart(caller, roomId, recordingOf(body, made))) };
      };
      const request = { route: 'POST /v1/rooms/{roomId}/recordings', body: { roomId, body: bodyAsSent } };
      const reply =
        idempotencyKey === null
          ? answer(await deps.database.transaction(make))
          : await idempotently(deps, caller, { ...request, key: idempotencyKey }, { make, answer });
      void publishRoomChanged(deps.producer.redis, roomId, null);
      void deps.producer.wakeDeliveries(deliveries);
      return reply;
    },
  });
}

function recordingOf(input: Static<typeof StartRecordingBody>, { id, startedAt }: Made): NewRecording {
  return {
    id,
    participantId: input.participantId ?? null,
    mode: input.mode,
    audioOnly: input.audioOnly ?? false,
    layout: input.mode === 'composite' && input.audioOnly !== true ? (input.layout ?? 'grid') : null,
    metadata: input.metadata ?? {},
    maxDurationSeconds: input.maxDurationSeconds ?? RECORDING_DURATION_SECONDS.default,
    startedAt: new Date(startedAt),
  };
}
