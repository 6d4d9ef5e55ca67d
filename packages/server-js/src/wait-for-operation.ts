import { CallplaneError } from './errors.js';
import { checkTimeout } from './limits.js';
import type { Operations, RuntimeOperation } from './operations.generated.js';
import { linkedTo, pause } from './retry.js';

const FIRST_PAUSE_MS = 250;
const PAUSE_MS_MAX = 5_000;
const TIMEOUT_MS = 60_000;

export interface OperationOf {
  roomId: string;
  /** For the removal of a participant. Without it the operation is the end of the room. */
  participantId?: string;
}

export interface WaitOptions {
  signal?: AbortSignal;
  /** How long to wait altogether, in milliseconds; default 60000. */
  timeoutMs?: number;
}

type Reader = Pick<Operations, 'readRoomOperation' | 'readParticipantOperation'>;

/**
 * Waits until the clean-up of a room or a participant is complete.
 * @returns the completed operation
 * @throws CallplaneError `OPERATION_FAILED` if it has failed, `TIMED_OUT` after `timeoutMs`, also while a read is being
 *   repeated, `OPERATION_NOT_FOUND` if the room was never ended or the participant never removed; TypeError for a wrong
 *   `timeoutMs`.
 */
export async function waitForOperation(
  api: Reader,
  { roomId, participantId }: OperationOf,
  { signal, timeoutMs = TIMEOUT_MS }: WaitOptions = {},
): Promise<RuntimeOperation> {
  checkTimeout(timeoutMs);
  signal?.throwIfAborted();
  const { ending, unlink } = linkedTo(signal);
  let seen: RuntimeOperation | undefined;
  const timer = setTimeout(() => ending.abort(timedOut(seen, timeoutMs)), timeoutMs);
  const options = { signal: ending.signal };
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      seen = await (participantId === undefined
        ? api.readRoomOperation({ roomId }, options)
        : api.readParticipantOperation({ roomId, participantId }, options));
      if (seen.status === 'completed') return seen;
      if (seen.status === 'failed') {
        const reason = seen.lastError?.message ?? 'no reason is known';
        throw new CallplaneError(`The operation ${seen.id} has failed: ${reason}`, {
          code: 'OPERATION_FAILED',
          operationId: 'waitForOperation',
        });
      }
      await pause(pauseMs, options.signal);
    }
  } finally {
    clearTimeout(timer);
    unlink();
  }
}

function timedOut(pending: RuntimeOperation | undefined, timeoutMs: number): CallplaneError {
  const state = pending === undefined ? 'No operation could be read' : `The operation ${pending.id} is still pending`;
  return new CallplaneError(`${state} after ${timeoutMs / 1_000} s.`, {
    code: 'TIMED_OUT',
    operationId: 'waitForOperation',
  });
}
