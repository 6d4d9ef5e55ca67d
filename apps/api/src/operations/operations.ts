import { OPERATION_KINDS, OPERATION_STATUSES, presentOperation, type OperationState } from '@callplane/core';
import { findOperation, type AcceptedOperation } from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { contextOf } from '../http/request-context.js';
import type { Call, Reply } from '../http/route.js';
import { namedObject, oneOf, orNull, timestamp } from '../http/schemas.js';

export const OperationSchema = namedObject(
  'RuntimeOperation',
  {
    id: Type.String({ description: 'Operation identifier, `op_…`.' }),
    kind: oneOf(OPERATION_KINDS),
    status: oneOf(OPERATION_STATUSES, '`pending` until the operation is `completed` or `failed`.'),
    attempts: Type.Integer({ description: 'Attempts of all runs. An attempt counts when it begins.' }),
    lastError: orNull(
      Type.Object(
        { code: Type.String(), message: Type.String() },
        { description: 'Why the last attempt failed.', additionalProperties: false },
      ),
    ),
    completedAt: orNull(timestamp('When the clean-up was complete.')),
  },
  { description: 'A durable clean-up that can be polled.' },
);

/** The answers of a route that ends with {@link answerOperation}. */
export const OPERATION_ANSWERS = {
  202: { description: 'The clean-up is pending: poll the runtime operation.', schema: OperationSchema },
  204: { description: 'The clean-up is complete.', schema: null },
};

/** How often a request reads its operation if Redis refuses its process the notices, in milliseconds. */
const READ_EVERY_MS = 250;

type OperationDeps = Pick<Deps, 'database' | 'logger' | 'producer' | 'settlements' | 'operationWaitMs'>;
type OperationCall = Pick<Call<unknown, unknown, unknown>, 'caller' | 'response'>;

/**
 * Answers a DELETE whose operation has been committed. Wakes a worker and waits briefly for completion. Answers 204 if
 * the clean-up is complete, otherwise 202 with the operation.
 * @param roomId the room whose signaling instances disconnect the affected participants at once; null: none.
 */
export async function answerOperation(
  deps: OperationDeps,
  roomId: string | null,
  accepted: AcceptedOperation,
  call: OperationCall,
): Promise<Reply> {
  const { wake } = accepted;
  // Nothing waits for this notice to be sent. If it is lost, the worker sends another one, and the signaling instances
  // poll every few seconds.
  if (wake !== null && roomId !== null) void publishRoomChanged(deps.producer.redis, roomId, accepted.roomVersion);
  const { operation, headers } = await waitForOperation(deps, accepted, call, deps.operationWaitMs);
  if (operation.status === 'completed') return { status: 204, headers };
  return { status: 202, body: presentOperation(operation), headers };
}

/** Wakes a worker, and waits as long as `Prefer` asks, or for `waitMs`. */
export async function waitForOperation(
  deps: OperationDeps,
  accepted: AcceptedOperation,
  call: OperationCall,
  waitMs: number,
): Promise<{ operation: OperationState; headers: Record<string, string> }> {
  contextOf(call.response).logFields['operationId'] = accepted.operation.id;
  const preferred = parsePrefer(call.response.req.get('prefer'));
  const operation = await wakeAndWait(deps, accepted, call, preferred.waitMs ?? waitMs);
  return { operation, headers: preferred.applied === null ? {} : { 'preference-applied': preferred.applied } };
}

async function wakeAndWait(
  deps: OperationDeps,
  { operation, wake }: AcceptedOperation,
  { caller, response }: OperationCall,
  waitMs: number,
): Promise<OperationState> {
  const { startedAtMs, logFields } = contextOf(response);
  if (operation.status !== 'pending') return operation;
  // Counts from the arrival of the request, so that a slow Redis cannot extend the wait while the wake-up is sent.
  const deadline = startedAtMs + waitMs;
  const watch = deps.settlements.watch(operation.id);
  try {
    if (wake !== null) {
      const isWoken = await deps.producer.wakeOperations([wake]);
      if (!isWoken) {
        // The operation is not lost: a scan of a worker finds its row, but only seconds later. Waiting would be in
        // vain: Redis is unusable, or this process has lately sent as many jobs of the environment as it may.
        logFields['wakeUp'] = 'not sent';
        return operation;
      }
    }
    let current = operation;
    for (;;) {
      const remainingMs = deadline - performance.now();
      if (remainingMs <= 0 || current.status !== 'pending') return current;
      const { isListening } = deps.settlements;
      const isOver = await watch.settledWithin(isListening ? remainingMs : Math.min(remainingMs, READ_EVERY_MS));
      // The row is authoritative, and a notice is only a hint.
      current = (await findOperation(deps.database.prisma, caller, operation.id)) ?? current;
      if (isOver) return current;
    }
  } finally {
    watch.stop();
  }
}

const WAIT_SECONDS_MAX = 10;

/**
 * Parses `Prefer: wait=N` (whole seconds, capped at 10) and `Prefer: respond-async`, which means no wait unless `wait`
 * is given too (RFC 7240). Ignores every other preference.
 * @returns `waitMs` is null without a preference.
 */
export function parsePrefer(header = ''): { waitMs: number | null; applied: string | null } {
  const preferences = header.split(',').map((part) => (part.split(';')[0] ?? '').trim().toLowerCase());
  const wait = preferences
    .map((preference) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(preference)?.[1])
    .find((n) => n !== undefined);
  if (wait !== undefined) {
    const seconds = Math.min(Number(wait), WAIT_SECONDS_MAX);
    return { waitMs: seconds * 1000, applied: `wait=${seconds}` };
  }
  return preferences.includes('respond-async')
    ? { waitMs: 0, applied: 'respond-async' }
    : { waitMs: null, applied: null };
}
