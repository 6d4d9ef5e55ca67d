import { PublicError, type ErrorCode, type RecordingInput } from '@callplane/core';
import { isRecordable, type RecordingRefusal } from '@callplane/db';
import type { Deps } from '../deps.js';

const REFUSALS: Readonly<Record<RecordingRefusal, ErrorCode>> = {
  room_not_found: 'ROOM_NOT_FOUND',
  room_ended: 'ROOM_ENDED',
  participant_not_found: 'PARTICIPANT_NOT_FOUND',
  unavailable: 'RECORDING_UNAVAILABLE',
};

/** A recorder or an agent that has just started counts a moment later. */
const RETRY_AFTER_SECONDS = '10';

export function refusal(reason: RecordingRefusal): PublicError {
  const headers = reason === 'unavailable' ? { 'retry-after': RETRY_AFTER_SECONDS } : {};
  return new PublicError(REFUSALS[reason], { headers });
}

/** @throws PublicError RECORDING_UNAVAILABLE: the option of a room is refused as a request to record would be. */
export async function requireRecordable(deps: Deps, record: RecordingInput | null | undefined): Promise<void> {
  if (record == null) return;
  if (deps.recordings === null || !(await isRecordable(deps.database.sql, null))) throw refusal('unavailable');
}
