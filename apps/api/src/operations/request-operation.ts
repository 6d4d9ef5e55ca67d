import { presentOperation, type OperationState } from '@callplane/core';
import type { AcceptedOperation } from '@callplane/db';
import { publishRoomChanged, QUEUE_OF_OPERATION } from '@callplane/queue';
import type { Deps } from '../deps.js';
import type { Preference } from '../http/prefer.js';
import type { Call, Reply } from '../http/route.js';

/**
 * The answer to a DELETE whose operation has been committed: wakes a worker, waits a moment for completion, and says
 * 204 when the clean-up is complete or 202 with the operation when it goes on.
 * @param roomId the room that it changes: its signaling instances disconnect at once whom this concerns.
 * @param read re-reads the operation: the row is the truth, a notice only a hint.
 */
export async function answerOperation(
  deps: Pick<Deps, 'producer' | 'settlements' | 'operationWaitMs' | 'logger'>,
  roomId: string,
  accepted: AcceptedOperation,
  call: Pick<Call<unknown, unknown, unknown>, 'preference' | 'startedAtMs' | 'log'>,
  read: () => Promise<OperationState | null>,
): Promise<Reply> {
  call.log({ operationId: accepted.operation.id });
  // Not waited for: the worker tells them too, and they look by themselves every few seconds.
  if (accepted.wake !== null) void publishRoomChanged(deps.producer.redis, roomId);
  const operation = await settle(deps, accepted, call, read);
  const headers = applied(call.preference);
  if (operation.status === 'completed') return { status: 204, headers };
  return { status: 202, body: presentOperation(operation), headers };
}

async function settle(
  deps: Pick<Deps, 'producer' | 'settlements' | 'operationWaitMs' | 'logger'>,
  { operation, wake }: AcceptedOperation,
  call: Pick<Call<unknown, unknown, unknown>, 'preference' | 'startedAtMs' | 'log'>,
  read: () => Promise<OperationState | null>,
): Promise<OperationState> {
  if (operation.status !== 'pending') return operation;
  // From the request's arrival, so that whatever Redis has cost already is not added to the wait.
  const deadline = call.startedAtMs + (call.preference.waitMs ?? deps.operationWaitMs);
  const watch = deps.settlements.watch(operation.id);
  try {
    if (wake !== null) {
      const woken = await deps.producer.wake({ queue: QUEUE_OF_OPERATION[wake.kind], row: wake });
      if (!woken.ok) {
        // Nothing is lost: the sweep finds the row. But nobody would tell us of its completion either.
        deps.logger.warn('wake-up not sent', { operationId: operation.id, error: woken.error });
        call.log({ wakeUp: 'not sent' });
        return operation;
      }
    }
    const remainingMs = deadline - performance.now();
    if (remainingMs <= 0 || !deps.settlements.isListening) return operation;
    await watch.settledWithin(remainingMs);
  } finally {
    watch.stop();
  }
  return (await read()) ?? operation;
}

function applied(preference: Preference): Record<string, string> {
  return preference.applied === null ? {} : { 'preference-applied': preference.applied };
}
