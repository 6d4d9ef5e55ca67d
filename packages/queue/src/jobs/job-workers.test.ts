import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually, PATIENT_REDIS, startTestRedis, stopAtEnd, type TestServer } from '@callplane/testing';
import { JobProducer, type OperationWakeUp, readQueueDepths } from './job-producer.js';
import { JobWorkers } from './job-workers.js';
import { operationJobId, type OperationJob } from './jobs.js';

const quiet = { onLost: () => undefined, onReady: () => undefined };
let redis: TestServer;
let producer: JobProducer;
let opened: JobWorkers<OperationJob>[] = [];
let invalid: string[] = [];
beforeAll(async () => {
  redis = await startTestRedis();
  producer = new JobProducer(redis.url, quiet, PATIENT_REDIS);
  stopAtEnd(() => producer.close());
  await eventually(() => producer.redis.status === 'ready');
});
beforeEach(() => producer.redis.flushall());
afterEach(async () => {
  await Promise.all(opened.map((workers) => workers.close()));
  opened = [];
  invalid = [];
});

function start(work: (operationId: string) => Promise<number | null>): JobWorkers<OperationJob> {
  const workers = new JobWorkers<OperationJob>({
    redisUrl: redis.url,
    queues: { 'room-end': 1 },
    work: ({ operationId }) => work(operationId),
    events: { ...quiet, onFailed: () => undefined, onInvalid: ({ message }) => invalid.push(message) },
  });
  opened.push(workers);
  return workers;
}
const row = (n: number, environmentId = 'env_1', runAttempts = 0): OperationWakeUp => ({
  kind: 'room.end',
  id: `op_${n}`,
  environmentId,
  run: 1,
  runAttempts,
});
const depths = async () => (await readQueueDepths(redis.url)).find(({ queue }) => queue === 'room-end')!;
/** Work that ends when it is told to. */
function held() {
  const begun: string[] = [];
  const ends = new Map<string, (retryInMs: number | null) => void>();
  return {
    begun,
    work: (id: string) => {
      begun.push(id);
      return new Promise<number | null>((resolve) => ends.set(id, resolve));
    },
    end: (id: string, retryInMs: number | null = null) => ends.get(id)!(retryInMs),
  };
}

describe('the job of an operation', () => {
  test('is active while it is worked on, and gone afterwards', async () => {
    const { begun, work, end } = held();
    start(work);
    await producer.wakeOperations([row(1), row(2)]);
    await eventually(() => begun.length === 1);
    expect(await depths()).toMatchObject({ active: 1, waiting: 1, delayed: 0 });
    end('op_1');
    await eventually(() => begun.length === 2);
    end('op_2');
    await eventually(async () => (await depths()).active === 0);
    expect(await producer.redis.exists(`callplane:room-end:${operationJobId(row(1))}`)).toBe(0);
  });

  test('is delayed until the next attempt, and keeps no job of that attempt away', async () => {
    const { begun, work, end } = held();
    start(work);
    await producer.wakeOperations([row(1)]);
    await eventually(() => begun.length === 1);
    end('op_1', 3_600_000);
    await eventually(async () => (await depths()).delayed === 1);
    // As a scan adds it, or an operator who does not want to wait.
    await producer.wakeOperations([row(1, 'env_1', 1)]);
    await eventually(() => begun.length === 2);
    end('op_1', 100);
    await eventually(() => begun.length === 3);
    end('op_1');
  });

  test('fails and goes if its work throws, and the next one follows', async () => {
    const begun: string[] = [];
    start((id) => {
      begun.push(id);
      return id === 'op_1' ? Promise.reject(new Error('no database')) : Promise.resolve(null);
    });
    await producer.wakeOperations([row(1), row(2)]);
    await eventually(() => begun.length === 2);
    await eventually(async () => {
      expect(await depths()).toMatchObject({ waiting: 0, active: 0, delayed: 0 });
      return true;
    });
    expect(begun).toEqual(['op_1', 'op_2']);
  });
});

test('jobs that no process of this release has added are dropped and reported, and hold no others up', async () => {
  const { begun, work, end } = held();
  const queue = 'callplane:room-end';
  for (const [id, data] of Object.entries({
    no_json: '{',
    other: '{"operationId":1}',
    missing: '[]',
    nothing: 'null',
  })) {
    await producer.redis.hset(`${queue}:${id}`, {
      name: 'x',
      data,
      opts: '{}',
      timestamp: '1',
      ats: '2000000000',
      stc: '2000000000',
    });
    await producer.redis.lpush(`${queue}:wait`, id);
  }
  await producer.wakeOperations([row(1)]);
  start(work);
  await eventually(() => begun.length === 1);
  end('op_1');
  await eventually(() => invalid.length >= 4);
  expect(invalid.filter((message) => message.includes('the job of an operation from Redis is not valid'))).toHaveLength(
    3,
  );
});

test('a tenant with many operations waits behind the first ones of others', async () => {
  await producer.wakeOperations(Array.from({ length: 150 }, (_, n) => row(n, 'env_many')));
  await producer.addDueOperations(
    Array.from({ length: 150 }, (_, n) => ({ ...row(1000 + n, 'env_many'), place: n + 1 })),
  );
  await producer.wakeOperations([row(5000, 'env_few'), row(5001, 'env_few')]);
  // On a busy machine, the last calls return before Redis has taken the jobs.
  await eventually(async () => (await depths()).waiting >= 252);
  const { begun, work, end } = held();
  start(work);
  for (let n = 1; n <= 6; n += 1) {
    await eventually(() => begun.length === n);
    end(begun[n - 1]!);
  }
  // The first ones of all, then the second ones.
  expect(begun.slice(0, 6)).toEqual(['op_0', 'op_1000', 'op_5000', 'op_1', 'op_1001', 'op_5001']);
  await producer.redis.flushall();
});

describe('closing', () => {
  test('takes no more jobs, waits for the work, and tells Redis', async () => {
    const { begun, work, end } = held();
    const workers = start(work);
    await producer.wakeOperations([row(1), row(2)]);
    await eventually(() => begun.length === 1);
    let isClosed = false;
    const closing = workers.close().then(() => (isClosed = true));
    await producer.wakeOperations([row(3)]);
    expect(isClosed).toBe(false);
    end('op_1');
    await closing;
    await eventually(async () => {
      expect(await depths()).toMatchObject({ waiting: 2, active: 0, workers: 0 });
      return true;
    });
    expect(begun).toEqual(['op_1']);
  });

  test('does not wait for a frozen Redis', async () => {
    const { begun, work, end } = held();
    const workers = start(work);
    await producer.wakeOperations([row(1)]);
    await eventually(() => begun.length === 1);
    redis.freeze();
    try {
      const closing = workers.close();
      end('op_1', 5000);
      await closing;
    } finally {
      redis.thaw();
    }
  });
});
