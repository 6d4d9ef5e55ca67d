import { REPLAYS_MAX, type DeliveryStatus } from './vocabulary.js';

/** Why a delivery cannot be replayed now; each is a public error code. */
export type ReplayConflict =
  'REPLAY_COUNT_MISMATCH' | 'DELIVERY_NOT_TERMINAL' | 'REPLAY_LIMIT_REACHED' | 'WEBHOOK_DISABLED';

/** Whether a delivery may be replayed; of several conflicts the first in this order. */
export function decideReplay(input: {
  status: DeliveryStatus;
  replayCount: number;
  expectedReplayCount: number;
  isEnabled: boolean;
}): ReplayConflict | null {
  if (input.replayCount !== input.expectedReplayCount) return 'REPLAY_COUNT_MISMATCH';
  if (input.status === 'pending' || input.status === 'delivering') return 'DELIVERY_NOT_TERMINAL';
  if (input.replayCount >= REPLAYS_MAX) return 'REPLAY_LIMIT_REACHED';
  return input.isEnabled ? null : 'WEBHOOK_DISABLED';
}
