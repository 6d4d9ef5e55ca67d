import { PublicError, type ErrorCode, type RecordingInput } from '@callplane/core';
import { lackOf, type RecordingRefusal } from '@callplane/db';
import type { Deps } from '../deps.js';

type Refusal = RecordingRefusal | 'no_store';

const REFUSALS: Readonly<Record<Refusal, [code: ErrorCode, message?: string]>> = {
  room_not_found: ['ROOM_NOT_FOUND'],
  room_ended: ['ROOM_ENDED'],
  room_encrypted: ['ROOM_ENCRYPTED'],
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

export function refusal(reason: Refusal): PublicError {
  const [code, message] = REFUSALS[reason];
  if (message === undefined) return new PublicError(code);
  return new PublicError(code, { message, headers: { 'retry-after': RETRY_AFTER_SECONDS } });
}

/** @throws PublicError RECORDING_UNAVAILABLE: the option of a room is refused as a request to record would be. */
export async function requireRecordable(deps: Deps, record: RecordingInput | null | undefined): Promise<void> {
  if (record == null) return;
  const lack = deps.recordings === null ? 'no_store' : await lackOf(deps.database.sql, null);
  if (lack !== null) throw refusal(lack);
}
