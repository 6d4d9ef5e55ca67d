import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { holdActive, watchIdle } from './idle.js';

const HOUR_MS = 3_600_000;
/** Reaches the other tabs, each of which is played by a listener. */
class FakeChannel extends EventTarget {
  static others: ((message: unknown) => unknown)[] = [];
  postMessage(message: unknown): void {
    for (const other of FakeChannel.others) {
      const answer = other(message);
      if (answer !== undefined) this.dispatchEvent(new MessageEvent('message', { data: answer }));
    }
  }
  close(): void {}
}

describe('a session without input', () => {
  const page = new EventTarget();
  const real = globalThis.BroadcastChannel;
  let ended = 0;
  let stop: () => void;
  beforeEach(() => {
    jest.useFakeTimers();
    FakeChannel.others = [];
    Object.assign(globalThis, { window: page, BroadcastChannel: FakeChannel });
    ended = 0;
    stop = watchIdle(HOUR_MS, () => (ended += 1));
  });
  afterEach(() => {
    stop();
    jest.useRealTimers();
    Object.assign(globalThis, { BroadcastChannel: real });
    Reflect.deleteProperty(globalThis, 'window');
  });

  test('is not idle while another tab has input', () => {
    FakeChannel.others = [(message) => (message === 'ask' ? Date.now() - 60_000 : undefined)];
    jest.advanceTimersByTime(3 * HOUR_MS);
    expect(ended).toBe(0);
    FakeChannel.others = [];
    jest.advanceTimersByTime(HOUR_MS + 20_000);
    expect(ended).toBeGreaterThan(0);
  });

  test('is not idle during a call', () => {
    const release = holdActive();
    jest.advanceTimersByTime(3 * HOUR_MS);
    expect(ended).toBe(0);
    release();
    jest.advanceTimersByTime(HOUR_MS + 20_000);
    expect(ended).toBeGreaterThan(0);
  });

  test('ends although the first input after a sleep comes before the next check', () => {
    // The computer sleeps: no timer runs.
    jest.setSystemTime(Date.now() + HOUR_MS + 1_000);
    for (let n = 0; n < 3; n += 1) {
      page.dispatchEvent(new Event('pointermove'));
      jest.advanceTimersByTime(400);
    }
    expect(ended).toBe(1);
  });

  test('tells other tabs of its input every 15 seconds, and of a call', () => {
    const told: unknown[] = [];
    FakeChannel.others = [(message) => void told.push(message)];
    jest.advanceTimersByTime(20_000);
    for (let n = 0; n < 30; n += 1) {
      page.dispatchEvent(new Event('keydown'));
      jest.advanceTimersByTime(1_000);
    }
    expect(told).toHaveLength(2);
    const release = holdActive();
    jest.advanceTimersByTime(60_000);
    expect(told.length).toBeGreaterThanOrEqual(5);
    expect(told.every((one) => typeof one === 'number')).toBe(true);
    release();
  });
});
