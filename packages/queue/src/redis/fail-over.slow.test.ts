import { describe, expect, test } from '@jest/globals';
import { eventually, newCertificate, startTestSentinels, stopAtEnd } from '@callplane/testing';
import { JobProducer } from '../jobs/job-producer.js';
import { JobWorkers } from '../jobs/job-workers.js';
import type { OperationJob } from '../jobs/jobs.js';
import { NoticeListener, publishNotice } from '../notices/notices.js';
import { examineRedis, readSentinelFacts } from './redis-facts.js';
import { readRedisTarget, type RedisLocation, type RedisSettings } from './redis-target.js';

const quiet = { onLost: () => undefined, onReady: () => undefined };

/** A producer, a worker and a listener, as the apps have them. */
function connectAll(where: RedisLocation) {
  const producer = new JobProducer(where, quiet);
  const jobs: string[] = [];
  const worker = new JobWorkers<OperationJob>({
    redisUrl: where,
    queues: { 'room-end': 4, 'participant-remove': 4 },
    work: ({ operationId }) => {
      jobs.push(operationId);
      return Promise.resolve(null);
    },
    events: { ...quiet, onFailed: () => undefined },
  });
  const listener = new NoticeListener(where, quiet);
  const notices: string[] = [];
  listener.on('operationSettled', (id) => notices.push(id));
  const close = () => Promise.all([worker.close(), listener.close(), producer.close()]);
  stopAtEnd(close);
  let n = 0;
  return {
    producer,
    /** Call it while Redis answers: otherwise timers of BullMQ keep the process for half a minute. */
    close,
    /** Resolves once a wake-up and a notice arrive that are sent from now on. */
    works: async () => {
      await eventually(() => producer.health.trouble === null);
      jobs.length = notices.length = 0;
      await eventually(async () => {
        n += 1;
        const id = `op_${n}`;
        const row = { kind: 'room.end', id, environmentId: 'env_1', run: 1, runAttempts: 0 } as const;
        await producer.wakeOperations([row]);
        await publishNotice(producer.redis, 'operationSettled', id);
        return jobs.length > 0 && notices.length > 0;
      });
    },
  };
}

describe('with three Sentinels', () => {
  test('connections follow the master to the replica that is promoted', async () => {
    const redis = await startTestSentinels();
    const target = readRedisTarget({ REDIS_URL: redis.url, REDIS_SENTINEL_PASSWORD: redis.sentinelPassword });
    const all = connectAll(target);
    await all.works();
    expect(await examineRedis(target, 'callplane:signing-keys-changed')).toMatchObject({
      role: 'master',
      replicas: 1,
      appendOnly: true,
      trouble: null,
    });
    expect(await readSentinelFacts(target)).toEqual({
      named: 3,
      answering: 3,
      failures: [],
      known: 3,
      masters: [`127.0.0.1:${redis.servers[0]?.port}`],
      quorumProblem: null,
    });

    const [first, second] = redis.servers;
    first?.kill('SIGKILL');
    await eventually(async () => (await redis.master()) === second);
    await all.works();
    await all.close();
  });
});

describe('with TLS', () => {
  test('Sentinels and servers are trusted through REDIS_CA_FILE, and others are refused with the reason', async () => {
    const newAuthority = () => newCertificate('IP:127.0.0.1', 'DNS:localhost');
    const authority = newAuthority();
    const redis = await startTestSentinels({ sentinels: 1, tls: authority });
    const settings = { REDIS_URL: redis.url, REDIS_SENTINEL_PASSWORD: redis.sentinelPassword };
    const ca = { REDIS_CA_FILE: authority.caFile };
    const all = connectAll(readRedisTarget({ ...settings, ...ca }));
    await all.works();
    await all.close();

    const direct = redis.servers[0]?.url ?? '';
    const reasons = Promise.all([
      reasonFor({ ...settings }),
      reasonFor({ ...settings, REDIS_CA_FILE: newAuthority().caFile }),
      reasonFor({ REDIS_URL: redis.url, ...ca }),
      reasonFor({ ...settings, ...ca, REDIS_URL: redis.url.replace('://:', '://:x') }),
      reasonFor({ REDIS_URL: direct }),
      reasonFor({ REDIS_URL: direct.replace('://:', '://:x'), ...ca }),
    ]);
    expect(await reasons).toEqual(['untrusted', 'untrusted', 'refused', 'refused', 'untrusted', 'refused']);
  });
});

/** Why a connection with these settings is unusable, once that is more specific than its loss. */
async function reasonFor(settings: RedisSettings): Promise<string> {
  const losses: Error[] = [];
  const producer = new JobProducer(readRedisTarget(settings), { ...quiet, onLost: (error) => losses.push(error) });
  try {
    await eventually(() => ![null, 'unreachable'].includes(producer.health.trouble));
    expect(losses.map(({ message }) => message).join()).not.toContain('test-redis-password');
    return String(producer.health.trouble);
  } finally {
    await producer.close();
  }
}
