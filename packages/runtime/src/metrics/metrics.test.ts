import { expect, test } from '@jest/globals';
import { createMetrics, startMetricsServer } from './metrics.js';

test('the metrics server serves counters and histograms, and reads gauges at each scrape', async () => {
  const metrics = createMetrics({ app: 'test' });
  const counter = metrics.counter({ name: 'callplane_things_total', help: 'Things.', labels: ['kind'] });
  const seconds = metrics.histogram({ name: 'callplane_wait_seconds', help: 'Waits.', buckets: [0.1, 1] });
  let waiting = 3;
  metrics.gauge({ name: 'callplane_waiting', help: 'Waiting.' }, () => waiting);
  counter.inc({ kind: 'good' }, 2);
  seconds.observe(0.5);
  const server = await startMetricsServer(metrics, { host: '127.0.0.1', port: 0 });
  const scrape = async (path = '/metrics', method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method });
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
  };
  try {
    const { status, type, text } = await scrape();
    expect([status, type]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect(text).toContain('callplane_things_total{kind="good",app="test"} 2');
    expect(text).toContain('callplane_wait_seconds_bucket{le="1",app="test"} 1');
    expect(text).toContain('callplane_waiting{app="test"} 3');
    waiting = 4;
    expect((await scrape('/metrics?x')).text).toContain('callplane_waiting{app="test"} 4');
    expect(await scrape('/metrics', 'HEAD')).toMatchObject({ status: 200, text: '' });
  } finally {
    await server.close();
  }
});

test('known label values are shown as 0 before their first event', async () => {
  const metrics = createMetrics({ app: 'test' });
  const known = [{ kind: 'good' }, { kind: 'bad' }];
  const counter = metrics.counter({ name: 'callplane_things_total', help: 'Things.', labels: ['kind'], known });
  metrics.histogram({ name: 'callplane_wait_seconds', help: 'Waits.', labels: ['kind'], known, buckets: [1] });
  expect(await metrics.text()).toContain('callplane_things_total{kind="bad",app="test"} 0');
  expect(await metrics.text()).toContain('callplane_wait_seconds_bucket{le="1",app="test",kind="good"} 0');
  counter.inc({ kind: 'bad' });
  expect(await metrics.text()).toContain('callplane_things_total{kind="bad",app="test"} 1');
});
