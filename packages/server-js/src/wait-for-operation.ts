import { CallplaneError } from './errors.js';
import type { Operations, RuntimeOperation } from './operations.generated.js';
import { pause } from './pause.js';

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
 * @throws CallplaneError `OPERATION_FAILED` if it has failed, `TIMED_OUT` if it is still pending after `timeoutMs`,
 *   `OPERATION_NOT_FOUND` if the room was never ended or the participant never removed.
 */
export async function waitForOperation(
  api: Reader,
  { roomId, participantId }: OperationOf,
  { signal, timeoutMs = TIMEOUT_MS }: WaitOptions = {},
): Promise<RuntimeOperation> {
  const endsAt = performance.now() + timeoutMs;
  const options = signal === undefined ? {} : { signal };
  const read = () =>
    participantId === undefined
      ? api.readRoomOperation({ roomId }, options)
      : api.readParticipantOperation({ roomId, participantId }, options);
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
    const operation = await read();
    if (operation.status === 'completed') return operation;
    if (operation.status === 'failed') {
      const reason = operation.lastError?.message ?? 'no reason is known';
      throw new CallplaneError(`The operation ${operation.id} has failed: ${reason}`, {
        code: 'OPERATION_FAILED',
        operationId: 'waitForOperation',
      });
    }
    const leftMs = endsAt - performance.now();
    if (leftMs <= 0) {
      throw new CallplaneError(`The operation ${operation.id} is still pending after ${timeoutMs / 1_000} s.`, {
        code: 'TIMED_OUT',
        operationId: 'waitForOperation',
      });
    }
    await pause(Math.min(pauseMs, leftMs), signal);
  }
}
