import { describe, expect, test } from '@jest/globals';
import pLimit from 'p-limit';
import { Batches, type BatchSettings } from './batches.js';

function setUp(settings: Partial<BatchSettings<string, string>> = {}) {
  const running: { key: string; items: string[]; finish: () => void; fail: (error: Error) => void }[] = [];
  const batches = new Batches<string, string>({
    run: (key, items) =>
      new Promise((resolve, reject) => {
        running.push({ key, items, finish: () => resolve(items.map((item) => `${key}:${item}`)), fail: reject });
      }),
    sizeMax: 3,
    ...settings,
  });
  return { batches, running, tick: () => new Promise(setImmediate) };
}

describe('batches', () => {
  test('run everything that one tick adds to a key together, and give each item its own result', async () => {
    const { batches, running, tick } = setUp();
    const results = Promise.all([batches.add('a', '1'), batches.add('b', '2'), batches.add('a', '3')]);
    expect(running).toEqual([]);
    await tick();
    expect(running).toMatchObject([
      { key: 'a', items: ['1', '3'] },
      { key: 'b', items: ['2'] },
    ]);
    for (const { finish } of running) finish();
    expect(await results).toEqual(['a:1', 'b:2', 'a:3']);
  });

  test('never run two batches of one key at once, and fill the next one meanwhile', async () => {
    const { batches, running, tick } = setUp();
    const first = batches.add('a', '1');
    await tick();
    const later = ['2', '3', '4', '5'].map((item) => batches.add('a', item));
    await tick();
    expect(running).toHaveLength(1);
    running[0]!.finish();
    expect(await first).toBe('a:1');
    await tick();
    expect(running).toMatchObject([{ items: ['1'] }, { items: ['2', '3', '4'] }]);
    running[1]!.finish();
    await tick();
    expect(running[2]).toMatchObject({ items: ['5'] });
    running[2]!.finish();
    expect(await Promise.all(later)).toEqual(['a:2', 'a:3', 'a:4', 'a:5']);
    await tick();
    void batches.add('a', '6');
    await tick();
    expect(running[3]).toMatchObject({ items: ['6'] });
  });

  test('reject the items of a failed batch only', async () => {
    const { batches, running, tick } = setUp();
    const failed = batches.add('a', '1');
    await tick();
    const next = batches.add('a', '2');
    running[0]!.fail(new Error('away'));
    await expect(failed).rejects.toThrow('away');
    await tick();
    running[1]!.finish();
    expect(await next).toBe('a:2');
  });

  test('take the items of a batch when its turn comes', async () => {
    const { batches, running, tick } = setUp({ turns: pLimit(1) });
    void batches.add('a', '1');
    void batches.add('b', '2');
    await tick();
    await tick();
    expect(running).toMatchObject([{ key: 'a' }]);
    void batches.add('b', '3');
    running[0]!.finish();
    await tick();
    expect(running[1]).toMatchObject({ key: 'b', items: ['2', '3'] });
  });

  test('keep items of one owner in different batches and in their order', async () => {
    const { batches, running, tick } = setUp({ ownerOf: (item) => item.slice(0, 1) });
    const results = Promise.all(['x1', 'y1', 'x2', 'x3', 'y2'].map((item) => batches.add('a', item)));
    for (const items of [['x1', 'y1'], ['x2', 'y2'], ['x3']]) {
      await tick();
      await tick();
      expect(running.at(-1)!.items).toEqual(items);
      running.at(-1)!.finish();
    }
    expect(await results).toEqual(['a:x1', 'a:y1', 'a:x2', 'a:x3', 'a:y2']);
  });
});
