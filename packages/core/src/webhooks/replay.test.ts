import { describe, expect, test } from '@jest/globals';
import { decideReplay } from './replay.js';

const fine = { status: 'failed', replayCount: 99, expectedReplayCount: 99, isEnabled: true } as const;

describe('whether a delivery may be replayed', () => {
  test('when it is finished, as often as the contract allows', () => {
    expect(decideReplay(fine)).toBeNull();
    expect(decideReplay({ ...fine, status: 'succeeded' })).toBeNull();
  });

  test('of several conflicts the first is told', () => {
    const worst = { status: 'delivering', replayCount: 100, expectedReplayCount: 3, isEnabled: false } as const;
    expect(decideReplay(worst)).toBe('REPLAY_COUNT_MISMATCH');
    expect(decideReplay({ ...worst, expectedReplayCount: 100 })).toBe('DELIVERY_NOT_TERMINAL');
    expect(decideReplay({ ...worst, expectedReplayCount: 100, status: 'failed' })).toBe('REPLAY_LIMIT_REACHED');
    expect(decideReplay({ ...fine, isEnabled: false })).toBe('WEBHOOK_DISABLED');
  });
});
