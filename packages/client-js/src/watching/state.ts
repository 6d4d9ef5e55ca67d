import { released, type Brake } from './brake.js';
import { FREE, SETTLE_MS, unsuspected, type Budget } from './budget.js';
import { waiting, type Probe } from './probe.js';
import { NO_QUEUE, NO_SIGNS, type Signs } from './signs.js';

export const PAUSE_MS = 2_500;

/** Three machines, and the signs that move them: see docs/decisions/0012-adaptation.md. */
export interface DownlinkState {
  readonly budget: Budget;
  readonly probe: Probe;
  readonly brake: Brake;
  readonly signs: Signs;
  /** Until then the effect of a reduction is not there yet, and congestion is no news. */
  readonly settledAtMs: number;
  readonly levels: ReadonlyMap<string, number>;
}

export const INITIAL: DownlinkState = {
  budget: FREE,
  probe: waiting(0),
  brake: released(0),
  signs: NO_SIGNS,
  settledAtMs: 0,
  levels: new Map(),
};

/**
 * The connection is up again after an interruption, perhaps over another path. The budget that was proven before is the
 * best guess. The probe, and the signs of that time, say nothing.
 */
export function resumed(state: DownlinkState, nowMs: number): DownlinkState {
  return {
    ...state,
    budget: unsuspected(state.budget),
    probe: waiting(nowMs + PAUSE_MS),
    brake: released(0),
    signs: { ...state.signs, packets: [], harmlessQueueMs: 0, bursts: [], veryLossy: 0, ...NO_QUEUE },
    // The key frames of all tracks come at once.
    settledAtMs: nowMs + SETTLE_MS,
  };
}
