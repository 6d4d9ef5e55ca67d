import { formatTimestamp } from '../time.js';
import type { OperationState } from './operation.js';

/** Presents an operation for the API and for events, with exactly six fields. */
export function presentOperation(operation: OperationState) {
  return {
    id: operation.id,
    kind: operation.kind,
    status: operation.status,
    attempts: operation.attempts,
    lastError:
      operation.lastError === null ? null : { code: operation.lastError.code, message: operation.lastError.message },
    completedAt: operation.completedAt === null ? null : formatTimestamp(operation.completedAt),
  };
}
