import { describe, expect, test } from '@jest/globals';
import { decideReplay } from './replay.js';

const fine = { status: 'failed', replayCount: 99, expectedReplayCount: 99, isErased: false, isEnabled: true } as const;

describe('decideReplay', () => {
  test('allows a replay of a finished delivery, as often as the contract allows', () => {
    expect(decideReplay(fine)).toBeNull();
    expect(decideReplay({ ...fine, status: 'succeeded' })).toBeNull();
  });

  test('returns the first of several conflicts', () => {
    const worst = {
      status: 'delivering',
      replayCount: 100,
      expectedReplayCount: 3,
      isErased: true,
      isEnabled: false,
    } as const;
    expect(decideReplay(worst)).toBe('REPLAY_COUNT_MISMATCH');
    expect(decideReplay({ ...worst, expectedReplayCount: 100 })).toBe('DELIVERY_NOT_TERMINAL');
    const finished = { ...worst, expectedReplayCount: 100, status: 'failed' } as const;
    expect(decideReplay(finished)).toBe('EVENT_ERASED');
    expect(decideReplay({ ...finished, isErased: false })).toBe('REPLAY_LIMIT_REACHED');
    expect(decideReplay({ ...fine, isEnabled: false })).toBe('WEBHOOK_DISABLED');
  });
});
