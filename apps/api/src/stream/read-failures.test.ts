import { PassThrough } from 'node:stream';
import { createLogger, createMetrics } from '@callplane/runtime';
import { eventually } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { reportReadFailures } from './event-feed.js';

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
