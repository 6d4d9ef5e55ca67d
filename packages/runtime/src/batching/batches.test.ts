import { stat } from 'node:fs';
import { describe, expect, jest, test } from '@jest/globals';
import { Batches, OverloadedError, type BatchSettings } from './batches.js';

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

  test('run as many batches of a key at once as the setting allows', async () => {
    const { batches, running, tick } = setUp({ atOnce: 2 });
    const results = ['1', '2', '3'].map(async (item) => {
      const added = batches.add('a', item);
      await tick();
      return added;
    });
    await tick();
    void batches.add('a', '4');
    await tick();
    void batches.add('a', '5');
    await tick();
    expect(running.map(({ items }) => items)).toEqual([['1', '2', '3'], ['4']]);
    running[1]!.finish();
    await tick();
    expect(running[2]!.items).toEqual(['5']);
    running[0]!.finish();
    expect(await Promise.all(results)).toEqual(['a:1', 'a:2', 'a:3']);
  });

  test('let the tenants of waiting items take turns', async () => {
    const { batches, running, tick } = setUp({ sizeMax: 4, tenantOf: (item) => item.slice(0, 1) });
    const added = ['x1', 'x2', 'x3', 'x4', 'x5', 'y1', 'z1', 'z2'].map((item) => batches.add('a', item));
    for (const items of [
      ['x1', 'y1', 'z1', 'x2'],
      ['z2', 'x3', 'x4', 'x5'],
    ]) {
      await tick();
      await tick();
      expect(running.at(-1)!.items).toEqual(items);
      running.at(-1)!.finish();
    }
    expect(await Promise.all(added)).toHaveLength(8);
  });

  test('refuse items beyond the bounds, of a busy tenant before the others', async () => {
    const waitingMax = { all: 4, perKey: 2 };
    const { batches, running, tick } = setUp({ tenantOf: (item) => item.slice(0, 1), waitingMax });
    const first = batches.add('a', 'w');
    await tick();
    const kept = ['x1', 'x2'].map((item) => batches.add('a', item));
    await expect(batches.add('a', 'x3')).rejects.toThrow(OverloadedError);
    kept.push(...['y1', 'y2'].map((item) => batches.add('a', item)));
    await expect(batches.add('a', 'z1')).rejects.toThrow('too much work waits for its batch: 4 items');
    expect(batches.waiting).toBe(4);
    for (let batch = 0; batch < 3; batch++) {
      running[batch]!.finish();
      await tick();
      await tick();
    }
    expect(await Promise.all([first, ...kept])).toEqual(['a:w', 'a:x1', 'a:x2', 'a:y1', 'a:y2']);
  });

  test('reject an item that has waited too long, but none that runs', async () => {
    const { batches, running, tick } = setUp({ waitMsMax: 20 });
    const runs = batches.add('a', '1');
    await tick();
    await expect(batches.add('a', '2')).rejects.toThrow('too much work waits for its batch: for 20 ms');
    running[0]!.finish();
    expect(await runs).toBe('a:1');
    await tick();
    const later = batches.add('a', '3');
    await tick();
    running[1]!.finish();
    expect(await later).toBe('a:3');
  });

  test('take up answers that came while the process stood still before they look for late items', async () => {
    const batches = new Batches<string, string>({
      // Another thread answers the first item, as PostgreSQL does.
      run: (_key, items) =>
        items.includes('1') ? new Promise((resolve) => stat('.', () => resolve(items))) : Promise.resolve(items),
      sizeMax: 1,
      waitMsMax: 300,
    });
    const first = batches.add('a', '1');
    await new Promise(setImmediate);
    const second = batches.add('a', '2');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 800);
    expect(await Promise.all([first, second])).toEqual(['1', '2']);
  });

  test('run the items of a failed batch alone, so that only the bad one fails', async () => {
    const sizes: number[] = [];
    const batches = new Batches<string, string>({
      run: (_key, items) => (items.includes('bad') ? Promise.reject(new Error('bad row')) : Promise.resolve(items)),
      sizeMax: 10,
      runsAlone: (error) => error instanceof Error && error.message === 'bad row',
      onBatch: (size) => sizes.push(size),
    });
    const added = ['1', '2', 'bad', '3', '4', '5'].map((item) => batches.add('a', item));
    const results = await Promise.allSettled(added);
    expect(results.map((result) => (result.status === 'fulfilled' ? result.value : 'failed'))).toEqual([
      '1',
      '2',
      'failed',
      '3',
      '4',
      '5',
    ]);
    expect(sizes).toEqual([6, 1, 1, 1, 1, 1, 1]);
  });

  test('do not repeat a batch whose failure leaves open whether it has changed something', async () => {
    const run = jest.fn(() => Promise.reject<string[]>(new Error('connection lost')));
    const batches = new Batches<string, string>({ run, sizeMax: 10, runsAlone: () => false });
    const results = await Promise.allSettled([batches.add('a', '1'), batches.add('a', '2')]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(run).toHaveBeenCalledTimes(1);
  });
});
