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

export function decideRetry(input: { status: DeliveryStatus; isEnabled: boolean }): RetryConflict | null {
  if (input.status === 'delivering') return 'DELIVERY_IN_FLIGHT';
  if (input.status !== 'pending') return 'DELIVERY_NOT_PENDING';
  return input.isEnabled ? null : 'WEBHOOK_DISABLED';
}

/** How fast a recovery goes, so that it does not flood a receiver that has just come back. */
export interface RecoveryPace {
  /** Time between two steps of a recovery, with any number of workers. */
  paceMs: number;
  batchMax: number;
  /** Deliveries of one step while `dueMax` of the endpoint's deliveries are due, so that new events do not wait long. */
  batchMaxWhileBusy: number;
  dueMax: number;
}

/**
 * 100 deliveries a second, but 10 a second while 200 of the endpoint's deliveries are due. The second figure is not 0:
 * due deliveries may wait for one that the recovery has yet to bring forward.
 */
export const RECOVERY_PACE: RecoveryPace = { paceMs: 1000, batchMax: 100, batchMaxWhileBusy: 10, dueMax: 200 };

/**
 * Maximum number of recoveries of an endpoint that are not complete. Each has a pace of its own, and the sweep that
 * looks for the next step reads all of them, also of disabled endpoints.
 */
export const RECOVERIES_PENDING_MAX = 10;

/** Maximum number of deliveries in flight that a recovery waits for; an endpoint has eight for each worker at most. */
export const RECOVERY_IN_FLIGHT_MAX = 100;
