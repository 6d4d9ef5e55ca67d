import type { OperationStatus } from './operation.js';

/** What asking again for a clean-up leads to, by its operation. */
export type OperationRequest =
  /** It is under way: the caller gets that one, never a second. */
  | 'join'
  /** It is complete: nothing is left to do. */
  | 'done'
  /** Its run failed: start a new run of the same operation. */
  | 'rerun';

export function decideRequest(existing: OperationStatus): OperationRequest {
  switch (existing) {
    case 'pending':
      return 'join';
    case 'completed':
      return 'done';
    case 'failed':
      return 'rerun';
  }
}
