import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { createLogger } from '../logging/logger.js';
import { createMetrics } from '../metrics/metrics.js';
import { Elections, type ElectionStore } from './elected.js';

/** A store whose lease the test gives and takes away. */
function fakeStore() {
  const store = {
    isHolder: true,
    finishedMsAgo: null as number | null,
    taken: [] as Parameters<ElectionStore['take']>[0][],
    released: [] as string[],
    take: (lease: Parameters<ElectionStore['take']>[0]) => {
      store.taken.push(lease);
      return Promise.resolve({ isHolder: store.isHolder, previous: 'other', finishedMsAgo: store.finishedMsAgo });
    },
    release: (name: string) => {
      store.released.push(name);
      return Promise.resolve();
    },
  };
  return store;
}

function setUp() {
  const store = fakeStore();
  const stream = new PassThrough();
  let log = '';
  stream.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const logger = createLogger({ LOG_LEVEL: 'info', LOG_FORMAT: 'json' }, 'test', stream);
  const metrics = createMetrics({ app: 'test' });
  let runs = 0;
  const work = (): Promise<void> => {
    runs += 1;
    return Promise.resolve();
  };
  const task = new Elections(store, { logger, metrics }).add({ name: 'test sweep', intervalMs: 100, work });
  return { store, metrics, task, runs: () => runs, log: () => log };
}

const { signal } = new AbortController();

test('a sweep runs only while the process holds its lease, which lasts two intervals', async () => {
  const { store, task, runs } = setUp();
  await task.tick(signal);
  expect([runs(), store.taken[0]]).toEqual([1, { name: 'test sweep', leaseMs: 200, finishedMsAgo: null }]);
  store.isHolder = false;
  await task.tick(signal);
  expect([runs(), task.isHolder]).toEqual([1, false]);
  store.isHolder = true;
  await task.tick(signal);
  expect([runs(), task.isHolder]).toEqual([2, true]);
});

test('the holder reports when it last completed the sweep, and not after it has lost it', async () => {
  const { store, task } = setUp();
  await task.tick(signal);
  await task.tick(signal);
  expect(store.taken[1]!.finishedMsAgo).toEqual(expect.any(Number));
  store.isHolder = false;
  await task.tick(signal);
  await task.tick(signal);
  expect(store.taken[3]!.finishedMsAgo).toBeNull();
});

test('metrics show the holder, and the age of the last sweep in every process', async () => {
  const { store, task, metrics } = setUp();
  store.isHolder = false;
  store.finishedMsAgo = 60_000;
  await task.tick(signal);
  const text = await metrics.text();
  expect(text).toContain('callplane_sweep_held{sweep="test sweep",app="test"} 0');
  expect(Number(/callplane_sweep_age_seconds\{[^}]*\} (\S+)/.exec(text)![1])).toBeGreaterThanOrEqual(60);
});

test('a sweep ends after its lease is prolonged, so that no late answer takes a released lease again', async () => {
  const store = fakeStore();
  const logger = createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'test', new PassThrough());
  const order: string[] = [];
  const { take } = store;
  let answer = (): void => undefined;
  const prolongs = new Promise<void>((begins) => {
    store.take = async (lease) => {
      if (store.taken.length === 1) {
        begins();
        await new Promise<void>((resolve) => (answer = resolve));
        order.push('prolonged');
      }
      return take(lease);
    };
  });
  const elections = new Elections(store, { logger, metrics: createMetrics({ app: 'test' }) });
  const task = elections.add({ name: 'test sweep', intervalMs: 5, work: () => prolongs });
  const ended = task.tick(signal).then(() => order.push('ended'));
  await prolongs;
  await new Promise((resolve) => setImmediate(resolve));
  answer();
  await ended;
  expect(order).toEqual(['prolonged', 'ended']);
});
