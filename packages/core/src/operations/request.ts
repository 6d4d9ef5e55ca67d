import type { OperationStatus } from './operation.js';

/** What asking for a clean-up leads to, by the operation that exists already. */
export type OperationRequest =
  /** There is none: make one. */
  | 'create'
  /** It is under way: the caller gets that one, never a second. */
  | 'join'
  /** It is complete: nothing is left to do. */
  | 'done'
  /** Its run failed: start a new run of the same operation. */
  | 'rerun';

export function decideRequest(existing: OperationStatus | null): OperationRequest {
  switch (existing) {
    case null:
      return 'create';
    case 'pending':
      return 'join';
    case 'completed':
      return 'done';
    case 'failed':
      return 'rerun';
  }
}
