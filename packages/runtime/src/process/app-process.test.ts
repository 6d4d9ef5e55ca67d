import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { createLogger } from '../logging/logger.js';
import { AppProcess } from './app-process.js';

const CONFIG = {
  LOG_LEVEL: 'info',
  LOG_FORMAT: 'json',
  DATABASE_URL: 'postgresql://x',
  DATABASE_POOLER: 'none',
  DATABASE_POOL_MAX: 1,
  METRICS_HOST: '127.0.0.1',
  METRICS_PORT: 0,
  SHUTDOWN_DEADLINE_MS: 1000,
} as const;

function newProcess() {
  const stream = new PassThrough();
  const app = new AppProcess('test', CONFIG, createLogger(CONFIG, 'test', stream));
  const lines = async (): Promise<Record<string, unknown>[]> => {
    // The logger writes the lines of one tick together at its end.
    await new Promise((resolve) => setImmediate(resolve));
    return String(stream.read() ?? '')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  };
  return { app, lines };
}

test('the process is ready only while its database answers, and reports Redis without needing it', async () => {
  const { app } = newProcess();
  const answers = { postgres: true, disk: true, redis: true };
  const ping = (name: keyof typeof answers) => () =>
    answers[name] ? Promise.resolve() : Promise.reject(new Error('gone'));
  const close = () => Promise.resolve();
  const connections = () => ({ used: 1, idle: 1, waiting: 1 });
  const database = { close, checkReady: ping('postgres'), connections: () => ({ used: 1, idle: 2, waiting: 2 }) };
  app.ownDatabase({ ...database, compareClock: () => Promise.resolve(0) }, [
    { close, checkDisk: ping('disk'), connections },
  ]);
  app.ownProducer({ close, health: { trouble: 'frozen', check: ping('redis') } }, ['frozen', 'full']);
  const health = app.health({ media: { ping: close } });
  expect((await health.readyz()).body).toEqual({
    status: 'ok',
    checks: { postgres: 'ok', redis: 'ok', media: 'ok' },
  });
  answers.redis = false;
  expect((await health.readyz()).status).toBe(200);
  for (const name of ['postgres', 'disk'] as const) {
    answers[name] = false;
    expect([name, (await health.readyz()).status]).toEqual([name, 503]);
    answers[name] = true;
  }
  const metrics = await app.metrics.text();
  expect(metrics).toContain('callplane_database_connections{state="waiting",app="test"} 3');
  expect(metrics).toContain('callplane_redis_unusable{reason="frozen",app="test"} 1');
  await app.lifecycle.close('test');
});

test('resources close in the reverse order of their opening, and repeated work stops with them', async () => {
  const { app, lines } = newProcess();
  const closed: string[] = [];
  const closable = (name: string) => ({ close: () => Promise.resolve(closed.push(name)) });
  app.ownDatabase({
    ...closable('database'),
    checkReady: () => Promise.resolve(),
    compareClock: () => Promise.resolve(3_600_000),
    connections: () => ({ used: 0, idle: 0, waiting: 0 }),
  });
  app.own('server', closable('server'));
  const outage = new Error('no PostgreSQL');
  app.repeat(
    'rooms',
    60_000,
    () => Promise.reject(outage),
    (error) => error === outage,
  );
  app.repeat(
    'media',
    60_000,
    () => Promise.reject(new Error('wrong')),
    (error) => error === outage,
  );
  expect(await app.lifecycle.close('test')).toBe(true);
  expect(closed).toEqual(['server', 'database']);
  const logged = await lines();
  expect(logged.filter(({ level }) => level === 'error')).toMatchObject([
    { message: 'task waits for PostgreSQL', task: 'rooms' },
    { message: 'task failed', task: 'media' },
  ]);
  expect(logged.filter(({ level }) => level === 'warn')).toMatchObject([
    { message: "clock differs from PostgreSQL's", aheadMs: 3_600_000 },
  ]);
});

test('wake-ups that were not sent are logged and counted by queue', async () => {
  const { app, lines } = newProcess();
  const events = app.producerEvents(['room-end', 'webhook-delivery']);
  events.onNotSent({ queue: 'room-end', count: 3, error: new Error('Redis is frozen') });
  const metrics = await app.metrics.text();
  expect(metrics).toContain('callplane_wake_ups_not_sent_total{queue="room-end",app="test"} 3');
  expect(metrics).toContain('callplane_wake_ups_not_sent_total{queue="webhook-delivery",app="test"} 0');
  expect(await lines()).toMatchObject([{ level: 'warn', message: 'wake-ups not sent', queue: 'room-end', count: 3 }]);
});

test('every payload of Redis that is not valid is counted, and few of them are logged', async () => {
  const { app, lines } = newProcess();
  const { onInvalid } = app.redisEvents('rooms');
  for (let n = 0; n < 1000; n += 1) onInvalid(new Error('a notice from Redis is not valid'));
  expect(await app.metrics.text()).toContain(
    'callplane_redis_payloads_invalid_total{connection="rooms",app="test"} 1000',
  );
  const logged = await lines();
  expect(logged[0]).toMatchObject({ level: 'error', message: 'redis payload invalid', connection: 'rooms' });
  expect(logged.length).toBeLessThan(100);
});

test('a subscription that Redis refuses shows in the health and in the metric', async () => {
  const { app } = newProcess();
  const closable = { close: () => Promise.resolve() };
  app.ownProducer({ ...closable, health: { trouble: null, check: () => Promise.resolve() } }, ['frozen', 'refused']);
  app.ownSubscriber('notices', { ...closable, refusal: 'refused' });
  expect((await app.health().readyz()).body).toMatchObject({ status: 'degraded', checks: { redis: 'refused' } });
  expect(await app.metrics.text()).toContain('callplane_redis_unusable{reason="refused",app="test"} 1');
});
