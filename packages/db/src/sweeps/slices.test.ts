import { describe, expect, jest, test } from '@jest/globals';
import { BEGINNING, inSlices, type TimeRange } from './slices.js';

const UNTIL = new Date('2026-01-01T00:00:00Z');
const ago = (ms: number) => new Date(UNTIL.getTime() - ms);
const canceled = () => Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });

/** Reads a range, and returns the widths of the slices that were read, in milliseconds. */
async function widthsOf(range: TimeRange, read: (slice: TimeRange) => Promise<unknown> = async () => undefined) {
  const slices: TimeRange[] = [];
  const isComplete = await inSlices(range, async (slice) => {
    await read(slice);
    slices.push(slice);
  });
  expect(isComplete).toBe(true);
  expect(slices.map(({ until }) => until)).toEqual([range.until, ...slices.slice(0, -1).map(({ from }) => from)]);
  expect(slices.at(-1)!.from).toEqual(range.from);
  return slices.map(({ from, until }) => until.getTime() - from.getTime());
}

describe('reading a range of times in slices', () => {
  test('reads each time once, from the end to the beginning, and half a century in fewer than 30 slices', async () => {
    const widths = await widthsOf({ from: BEGINNING, until: UNTIL });
    expect(widths.slice(0, 3)).toEqual([60_000, 120_000, 240_000]);
    expect(widths.length).toBeLessThan(30);
  });

  test('reads no slice of an empty range', async () => {
    const read = jest.fn(async () => undefined);
    expect(await inSlices({ from: UNTIL, until: UNTIL }, read)).toBe(true);
    expect(await inSlices({ from: UNTIL, until: ago(1) }, read)).toBe(true);
    expect(read).not.toHaveBeenCalled();
  });

  test('reads narrower slices after a slow one', async () => {
    let nowMs = 0;
    const now = jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const isSlow = ({ from }: TimeRange) => from <= ago(4 * 60_000);
    const widths = await widthsOf({ from: ago(9 * 60_000), until: UNTIL }, async (slice) => {
      if (isSlow(slice)) nowMs += 600;
    });
    now.mockRestore();
    expect(widths).toEqual([60_000, 120_000, 240_000, 120_000]);
  });

  test('reads again in parts what PostgreSQL cancelled, and fails once a part cannot be narrower', async () => {
    const refused: number[] = [];
    const refuse = async ({ from, until }: TimeRange) => {
      refused.push(until.getTime() - from.getTime());
      throw canceled();
    };
    await expect(inSlices({ from: BEGINNING, until: UNTIL }, refuse)).rejects.toThrow('statement timeout');
    expect(refused).toEqual([60_000, 7500, 1000]);
  });

  test('fails at once with any other error', async () => {
    const read = jest.fn(async () => Promise.reject(new Error('no connection')));
    await expect(inSlices({ from: BEGINNING, until: UNTIL }, read)).rejects.toThrow('no connection');
    expect(read).toHaveBeenCalledTimes(1);
  });

  test('ends before the next slice once the signal is aborted', async () => {
    const stop = new AbortController();
    const read = jest.fn(async () => stop.abort());
    expect(await inSlices({ from: BEGINNING, until: UNTIL }, read, stop.signal)).toBe(false);
    expect(read).toHaveBeenCalledTimes(1);
  });
});
