import { formatTimestamp } from '../time.js';
import type { OperationError, OperationKind, OperationStatus } from './operation.js';

/** An operation as a caller may see it. */
export interface OperationState {
  id: string;
  kind: OperationKind;
  status: OperationStatus;
  attempts: number;
  lastError: OperationError | null;
  completedAt: Date | null;
}

/** An operation as the API returns it and as events hold it: exactly six fields. */
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
