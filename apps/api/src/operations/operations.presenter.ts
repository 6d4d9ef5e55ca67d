import { formatTimestamp } from '@callplane/core';
import type { OperationRow } from '@callplane/db';

/** An operation as the API returns it: exactly six fields. */
export function presentOperation(operation: OperationRow) {
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
