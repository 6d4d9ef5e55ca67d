import { beforeAll, describe, expect, test } from '@jest/globals';
import { askTestRedis, eventually, startTestSentinels, type TestApp, type TestServer } from '@callplane/testing';
import { measured, startStack, type Stack } from './faults.testkit.js';

/** Rooms that callers create and end at the same time. */
const CALLERS = 4;

/** Rate limits that are shared through Redis, and that no caller reaches. */
const LIMITS = { RATE_LIMIT_READS_PER_SECOND: '1000000', RATE_LIMIT_WRITES_PER_SECOND: '1000000' };

/** A Redis that fails over, and how to break it. */
interface Redis {
  env: Record<string, string>;
  /** The server that holds the keys now; null if that is not known. */
  master(): Promise<TestServer | null>;
}

async function sentinels(): Promise<Redis & { sentinels: readonly TestServer[] }> {
  const { url, sentinelPassword, master, sentinels } = await startTestSentinels();
  return { env: { REDIS_URL: url, REDIS_SENTINEL_PASSWORD: sentinelPassword }, master, sentinels };
}

/** Apps, callers that go on until they are stopped, and what they were told. */
async function underLoad(stack: Stack, env: Record<string, string>) {
  const [api, worker] = await Promise.all([
    stack.spawnApi({ ...LIMITS, ...env }),
    stack.spawnWorker({ ...env, SWEEP_INTERVAL_MS: '5000' }),
  ]);
  const rooms: string[] = [];
  const statuses = new Map<string, number>();
  let isOver = false;
  const call = async (...args: Parameters<Stack['call']>) => {
    const answer = await stack.call(...args);
    const name = `${args[1]} ${answer.status}`;
    statuses.set(name, (statuses.get(name) ?? 0) + 1);
    return answer;
  };
  const caller = async (): Promise<void> => {
    while (!isOver) {
      const created = await call(api, 'POST', '/v1/rooms', { body: { name: 'Room' } });
      const roomId = String(created.body.id);
      const ended = await call(api, 'DELETE', `/v1/rooms/${roomId}`, { prefer: 'wait=1' });
      if ([202, 204].includes(ended.status)) rooms.push(roomId);
    }
  };
  const callers = Array.from({ length: CALLERS }, caller);
  const isFast = async (): Promise<boolean> => {
    const before = await sweptBy(worker);
    const roomId = await stack.newRoom(api);
    const ended = await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`, { prefer: 'wait=5' });
    return (
      ended.status === 204 && (await sweptBy(worker)) === before && (await isUsable(api)) && (await isUsable(worker))
    );
  };
  return {
    api,
    worker,
    /** Resolves once wake-ups and notices of both apps arrive through Redis, without a scan. */
    fast: () => eventually(isFast),
    /** Ends the load. Every room whose end was accepted has ended, and no request has failed. */
    settle: async () => {
      isOver = true;
      await Promise.all(callers);
      await stack.allCompleted(rooms);
      measured(Object.fromEntries(statuses));
      expect([...statuses.keys()].filter((name) => !/ 20[124]$/.test(name))).toEqual([]);
      await Promise.all([api.stop(), worker.stop()]);
    },
  };
}

/** Operations that the worker found by scanning PostgreSQL. */
async function sweptBy(worker: TestApp): Promise<number> {
  const text = await (await fetch(worker.metricsUrl)).text();
  const lines = text.split('\n').filter((line) => /^callplane_operation_swept_total.*what="woken"/.test(line));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

async function isUsable(app: TestApp): Promise<boolean> {
  const base = app.name === 'api' ? app.url : app.healthUrl;
  const report = (await (await fetch(`${base}/readyz`)).json()) as { checks: Record<string, string> };
  return report.checks['redis'] === 'ok';
}

/** Runs `fault`, and prints how long the promotion and then the return of the fast path take. */
async function timed(name: string, redis: Redis, fault: () => unknown, fast: () => Promise<unknown>): Promise<void> {
  const before = await redis.master();
  const startedAt = performance.now();
  await fault();
  await eventually(async () => ![before, null].includes(await redis.master()));
  const promotedAt = performance.now();
  await fast();
  measured({
    [`${name}: promotion after`]: promotedAt - startedAt,
    'fast path after the promotion': performance.now() - promotedAt,
    unit: 'ms',
  });
}

let stack: Stack;
beforeAll(async () => {
  stack = await startStack();
});

describe('with three Sentinels, under load', () => {
  test('nothing is lost when the master dies, freezes, is demoted, and when Sentinels die', async () => {
    const redis = await sentinels();
    const load = await underLoad(stack, redis.env);
    await load.fast();

    const first = await redis.master();
    await timed('master killed', redis, () => first?.kill('SIGKILL'), load.fast);
    await first?.start();
    await eventually(async () => (await replicasOf(redis)) === 1);

    const second = await redis.master();
    await timed('master frozen', redis, () => second?.freeze(), load.fast);
    second?.thaw();
    await eventually(async () => (await replicasOf(redis)) === 1);
    await load.fast();

    // One Sentinel is dead and one frozen: no promotion is possible, and the master serves on.
    const [dead, frozen, last] = redis.sentinels;
    dead?.kill('SIGKILL');
    frozen?.freeze();
    await load.fast();
    await dead?.start();
    frozen?.thaw();

    await timed('planned change', redis, () => failOver(last), load.fast);
    await load.settle();
  });
});

async function info(server: TestServer | null): Promise<string> {
  return server === null ? '' : String(await askTestRedis(server, 'INFO', 'replication').catch(() => ''));
}

async function replicasOf(redis: Redis): Promise<number> {
  return (await info(await redis.master())).match(/state=online/g)?.length ?? 0;
}

/** Asks a Sentinel for a promotion until it agrees: it refuses for some time after the last one. */
async function failOver(sentinel: TestServer | undefined): Promise<void> {
  if (sentinel === undefined) throw new Error('there is no third Sentinel');
  await eventually(() =>
    askTestRedis(sentinel, 'SENTINEL', 'FAILOVER', 'callplane').then(
      () => true,
      () => false,
    ),
  );
}
