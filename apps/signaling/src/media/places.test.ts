import { describe, expect, test } from '@jest/globals';
import { MediaPlaces } from './places.js';

describe('a media server', () => {
  /** Whether a server counts as lost that has been down for this time, if 5 s are the limit. */
  const isLost = (downForMs: number, isRefusing: boolean, deadMs = 5000) => {
    const lookUp = () => Promise.resolve({ downForMs, isRefusing });
    return new MediaPlaces({ lookUp } as any, () => Promise.resolve(new Map())).isLost('m1', deadMs);
  };

  test('counts as lost after the limit, or a fifth of it if it refuses connections', async () => {
    expect(await Promise.all([isLost(0, false), isLost(4999, false), isLost(5001, false)])).toEqual([
      false,
      false,
      true,
    ]);
    expect(await Promise.all([isLost(999, true), isLost(1001, true)])).toEqual([false, true]);
    expect(await Promise.all([isLost(11_999, true, 60_000), isLost(12_001, true, 60_000)])).toEqual([false, true]);
  });

  test('that refuses connections has a second to start again, whatever the limit', async () => {
    expect(await Promise.all([isLost(999, true, 1000), isLost(1001, true, 1000)])).toEqual([false, true]);
  });
});
