import { REPLAYS_MAX, type DeliveryStatus } from './vocabulary.js';

/** Why a delivery cannot be replayed now; each value is a public error code. */
export type ReplayConflict =
  | 'REPLAY_COUNT_MISMATCH'
  | 'DELIVERY_NOT_TERMINAL'
  | 'EVENT_ERASED'
  | 'REPLAY_LIMIT_REACHED'
  | 'WEBHOOK_DISABLED';

/** Decides whether a delivery may be replayed; of several conflicts, returns the first in the order of the checks. */
export function decideReplay(input: {
  status: DeliveryStatus;
  replayCount: number;
  expectedReplayCount: number;
  /** Whether the personal data in its event was erased, or an erasure is pending. */
  isErased: boolean;
  isEnabled: boolean;
}): ReplayConflict | null {
  if (input.replayCount !== input.expectedReplayCount) return 'REPLAY_COUNT_MISMATCH';
  if (input.status === 'pending' || input.status === 'delivering') return 'DELIVERY_NOT_TERMINAL';
  if (input.isErased) return 'EVENT_ERASED';
  if (input.replayCount >= REPLAYS_MAX) return 'REPLAY_LIMIT_REACHED';
  return input.isEnabled ? null : 'WEBHOOK_DISABLED';
}

/** Why a delivery cannot be retried now; each value is a public error code. */
export type RetryConflict = 'DELIVERY_NOT_PENDING' | 'DELIVERY_IN_FLIGHT' | 'WEBHOOK_DISABLED';

/** Decides whether the next attempt of a delivery may be brought forward to now. */
export function decideRetry(input: { status: DeliveryStatus; isEnabled: boolean }): RetryConflict | null {
  if (input.status === 'delivering') return 'DELIVERY_IN_FLIGHT';
  if (input.status !== 'pending') return 'DELIVERY_NOT_PENDING';
  return input.isEnabled ? null : 'WEBHOOK_DISABLED';
}
