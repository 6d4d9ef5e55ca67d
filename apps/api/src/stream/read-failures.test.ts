import { PassThrough } from 'node:stream';
import { createLogger, createMetrics } from '@callplane/runtime';
import { eventually } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import type { EventWaiter } from '../events/event-waiter.js';
import { EventFeed, reportReadFailures, type StreamRead } from './event-feed.js';

const away = () => Promise.reject(new Error('PostgreSQL is away'));

test('each failed read is counted, and an outage is one line a minute with the number of failed reads', async () => {
  const written: string[] = [];
  const stream = new PassThrough();
  stream.on('data', (chunk: Buffer) => written.push(chunk.toString()));
  const metrics = createMetrics({ app: 'api' });
  let nowMs = 0;
  const report = reportReadFailures(
    createLogger({ LOG_LEVEL: 'debug', LOG_FORMAT: 'json' }, 'api', stream),
    metrics,
    () => nowMs,
  );
  for (; nowMs <= 60_000; nowMs += 1000) report('events', new Error('PostgreSQL is away'));
  report('backlog', new Error('PostgreSQL is away'));
  const text = await metrics.text();
  expect(text).toMatch(/callplane_stream_read_failures_total\{.*read="events".*\} 61/);
  expect(text).toMatch(/callplane_stream_read_failures_total\{.*read="backlog".*\} 1/);
  expect(text).toMatch(/callplane_stream_read_failures_total\{.*read="callers".*\} 0/);
  const logged = () => written.join('');
  await eventually(() => logged().split('\n').length > 3);
  const lines = logged()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.map(({ read, failed }) => [read, failed])).toEqual([
    ['events', 1],
    ['events', 60],
    ['backlog', 1],
  ]);
  expect(lines[0]).toMatchObject({ message: 'stream read failed' });
});

test('a feed reports the reads that fail, and goes on', async () => {
  const failed: StreamRead[] = [];
  const reported = (read: StreamRead) =>
    new Promise<void>((resolve) => {
      onFailed = (one) => {
        failed.push(one);
        if (one === read) resolve();
      };
    });
  let onFailed: (read: StreamRead) => void = () => undefined;
  const position = { id: 'evt_1', transactionId: '1', roomId: null, sequence: null };
  const wait = { next: away, cancel: () => undefined } as unknown as ReturnType<EventWaiter['watch']>;
  const ofEvents = reported('events');
  const feed = new EventFeed({ newest: () => Promise.resolve(position), after: away }, wait, (read) => onFailed(read));
  await feed.start();
  await ofEvents;
  feed.close();
  expect(new Set(failed)).toEqual(new Set(['events']));
});
