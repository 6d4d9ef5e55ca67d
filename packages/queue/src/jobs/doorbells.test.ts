import { beforeEach, describe, expect, jest, test, afterEach } from '@jest/globals';
import { DOORBELL_EVERY_MS, Doorbells, type Doorbell, type WakeResult } from './doorbells.js';

describe('doorbells', () => {
  let sent: string[][];
  let result: WakeResult;
  let doorbells: Doorbells;

  beforeEach(() => {
    jest.useFakeTimers();
    sent = [];
    result = { ok: true };
    doorbells = new Doorbells((rung) => {
      sent.push(rung.map(({ id }) => id));
      return Promise.resolve(result);
    });
  });
  afterEach(() => void jest.useRealTimers());

  const bell = (endpointId: string, id = endpointId): Doorbell => ({ id, endpointId });

  test('ring at once for endpoints that have not rung lately, once for each', async () => {
    expect(await doorbells.ring([bell('a', '1'), bell('a', '2'), bell('b', '3')])).toEqual({ ok: true });
    expect(sent).toEqual([['2', '3']]);
    jest.advanceTimersByTime(DOORBELL_EVERY_MS);
    await doorbells.ring([bell('a', '4')]);
    expect(sent).toEqual([['2', '3'], ['4']]);
  });

  test('ring once more at the end of the interval for all that came within it', async () => {
    await doorbells.ring([bell('a', '1')]);
    const later = [2, 3, 4].map((n) => doorbells.ring([bell('a', String(n))]));
    jest.advanceTimersByTime(DOORBELL_EVERY_MS - 1);
    expect(sent).toEqual([['1']]);
    // Another endpoint does not wait.
    await doorbells.ring([bell('b', '5')]);
    expect(sent).toEqual([['1'], ['5']]);
    jest.advanceTimersByTime(1);
    expect(sent).toEqual([['1'], ['5'], ['4']]);
    expect(await Promise.all(later)).toEqual([{ ok: true }, { ok: true }, { ok: true }]);
    // The next interval begins with the doorbell that ended this one.
    void doorbells.ring([bell('a', '6')]);
    expect(sent).toHaveLength(3);
    jest.advanceTimersByTime(DOORBELL_EVERY_MS);
    expect(sent[3]).toEqual(['6']);
  });

  test('ring 40 times a second for an endpoint with a steady stream of events', () => {
    for (let atMs = 0; atMs < 1000; atMs += 5) {
      void doorbells.ring([bell('a')]);
      jest.advanceTimersByTime(5);
    }
    // The last one ends the interval that the first doorbell began.
    expect(sent).toHaveLength(1000 / DOORBELL_EVERY_MS + 1);
  });

  test('that wait are sent by a flush, and the caller of each gets a failure of sending', async () => {
    await doorbells.ring([bell('a', '1')]);
    const later = doorbells.ring([bell('a', '2')]);
    const failure: WakeResult = { ok: false, error: new Error('no Redis') };
    result = failure;
    await doorbells.flush();
    expect(sent).toEqual([['1'], ['2']]);
    expect(await later).toBe(failure);
    await doorbells.flush();
    expect(jest.getTimerCount()).toBe(0);
    expect(sent).toHaveLength(2);
  });
});
