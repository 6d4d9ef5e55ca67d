import { describe, expect, test } from '@jest/globals';
import { addressKey, bucketTimes, KeyedPace, paceTimes, TokenBucket } from './limits.js';

describe('KeyedPace', () => {
  const tryAt = (pace: KeyedPace, key: string, nowMs: number): number => {
    const waitMs = pace.waitMs(key, nowMs);
    if (waitMs === 0) pace.charge(key, nowMs);
    return waitMs;
  };

  test('allows the burst at once, then one attempt per interval', () => {
    const pace = new KeyedPace(paceTimes({ perMinute: 20, burst: 3 }), 10);
    expect([1, 2, 3, 4].map(() => tryAt(pace, 'a', 1000))).toEqual([0, 0, 0, 3000]);
    expect(tryAt(pace, 'a', 3999)).toBe(1);
    expect(tryAt(pace, 'a', 4000)).toBe(0);
    expect(tryAt(pace, 'a', 4000)).toBe(3000);
    expect(tryAt(pace, 'b', 4000)).toBe(0);
  });

  test('carries the debt of concurrent attempts, up to one more burst', () => {
    const pace = new KeyedPace(paceTimes({ perMinute: 60, burst: 5 }), 10);
    expect(Array.from({ length: 7 }, () => pace.charge('a', 0))).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => n * 1000));
    expect(pace.waitMs('a', 0)).toBe(3000);
    for (let n = 0; n < 1000; n++) pace.charge('a', 0);
    expect(pace.waitMs('a', 0)).toBe(6000);
  });

  test('keeps at most `keysMax` keys, and drops the least recently charged one', () => {
    const pace = new KeyedPace(paceTimes({ perMinute: 1, burst: 1 }), 2);
    for (const key of ['a', 'b', 'a', 'c']) pace.charge(key, 0);
    expect(pace.size).toBe(2);
    expect(['a', 'b', 'c'].map((key) => pace.waitMs(key, 0) > 0)).toEqual([true, false, true]);
  });
});

test('a bucket has no limit without a rate, and raises a burst below the rate to the rate', () => {
  const unlimited = new TokenBucket(bucketTimes({ perSecond: 0, burst: 1 }));
  expect(Array.from({ length: 100 }, () => unlimited.take(0)).every(Boolean)).toBe(true);
  const bucket = new TokenBucket(bucketTimes({ perSecond: 2, burst: 1 }));
  expect([bucket.take(0), bucket.take(0), bucket.take(0)]).toEqual([true, true, false]);
});

test('a bucket takes several tokens at once, owes at most its size, and tells when half of it is free', () => {
  const bucket = new TokenBucket(bucketTimes({ perSecond: 10, burst: 10 }));
  bucket.charge(0, 4);
  expect(bucket.halfFullInMs(0)).toBe(0);
  bucket.charge(0, 4);
  expect([bucket.halfFullInMs(0), bucket.halfFullInMs(300), bucket.waitMs(0)].map(Math.round)).toEqual([350, 50, 0]);
  bucket.charge(0, 100);
  expect(Math.round(bucket.waitMs(0))).toBe(1100);
});

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['2001:db8:1:3::1', '2001:db8:1:3::/64'],
  ['fe80::1%eth0', 'fe80::/64'],
  ['::1', '::/64'],
  ['not an address', 'unknown'],
  [undefined, 'unknown'],
])('addressKey maps %s to %s', (address, key) => {
  expect(addressKey(address)).toBe(key);
});
