import { beforeAll, expect, test } from '@jest/globals';
import { eventually, startTestPostgres, type TestApp, type TestPostgres } from '@callplane/testing';
import { measured, startStack, type Answer, type Stack } from './faults.testkit.js';

let postgres: TestPostgres;
let stack: Stack;
let api: TestApp;
let worker: TestApp;
beforeAll(async () => {
  postgres = await startTestPostgres();
  stack = await startStack((await postgres.createDatabase()).url);
  [api, worker] = await Promise.all([stack.spawnApi(), stack.spawnWorker({ LEASE_MS: '10000' })]);
});

/** Calls the API with eight concurrent callers until `stop`, and keeps every response. */
function load() {
  const answers: Answer[] = [];
  const accepted = new Set<string>();
  let stopped = false;
  const call = async (method: string, path: string, sent = {}) => {
    const answer = await stack.call(api, method, path, sent);
    answers.push(answer);
    return answer;
  };
  const callers = Array.from({ length: 8 }, async () => {
    while (!stopped) {
      const created = await call('POST', '/v1/rooms', { body: { name: 'Room' } });
      if (created.status !== 201) continue;
      const path = `/v1/rooms/${String(created.body.id)}`;
      await call('GET', path);
      await call('POST', `${path}/tokens`, { body: { participantName: 'Ada' } });
      const ended = await call('DELETE', path, { prefer: 'respond-async' });
      if (ended.status < 300) accepted.add(String(created.body.id));
    }
  });
  const ended = Promise.all(callers);
  // stop() reports the rejection later; this prevents an unhandled one.
  ended.catch(() => undefined);
  return {
    answers,
    accepted,
    /** Throws if a call got no response. */
    stop: async () => {
      stopped = true;
      await ended;
    },
  };
}

async function survives(fault: (answers: Answer[]) => Promise<void>) {
  const traffic = load();
  let recoveryMs: number;
  try {
    await eventually(() => traffic.answers.length > 50);
    await fault(traffic.answers);
    const since = traffic.answers.length;
    const backAt = performance.now();
    await eventually(() => traffic.answers.slice(since).filter(({ status }) => status < 300).length > 50);
    recoveryMs = performance.now() - backAt;
  } finally {
    await traffic.stop();
  }

  const { answers, accepted } = traffic;
  const counts: Record<string, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  const refused = answers.filter(({ status }) => status >= 300);
  for (const { status, headers, body } of refused) {
    expect({ status, body }).toEqual({
      status: 503,
      body: { error: { code: 'UNAVAILABLE', message: expect.any(String), requestId: headers.get('x-request-id') } },
    });
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  }
  measured({
    statuses: JSON.stringify(counts),
    'slowest ms': Math.max(...answers.map(({ ms }) => ms)),
    'ms until 50 more succeed': recoveryMs,
    accepted: accepted.size,
  });

  // Every room that was accepted with 2xx exists and its operation completes, without a restart of any process.
  await stack.ageWakeUps();
  await eventually(
    async () => {
      const open = await stack.database.prisma.runtimeOperation.findMany({ where: { status: { not: 'completed' } } });
      expect(open).toEqual([]);
      return true;
    },
    { intervalMs: 100 },
  );
  const ended = await stack.database.prisma.room.findMany({ where: { status: 'ended' }, select: { id: true } });
  const known = new Set(ended.map(({ id }) => id));
  expect([...accepted].filter((id) => !known.has(id))).toEqual([]);
  const ready = await Promise.all([`${api.url}/readyz`, `${worker.healthUrl}/readyz`].map((url) => fetch(url)));
  expect(ready.map(({ status }) => status)).toEqual([200, 200]);
  for (const app of [api, worker]) expect(app.output()).not.toContain('process failed');
  return counts;
}

test('a restart of PostgreSQL under load causes only 503 responses, and every process survives it', async () => {
  const counts = await survives(async (answers) => {
    postgres.kill('SIGINT');
    await eventually(() => answers.some(({ status }) => status === 503));
    await postgres.restart();
  });
  expect(counts['503']).toBeGreaterThan(0);
});

test('a crash of PostgreSQL causes only 503 responses, and every process survives it', async () => {
  await survives(async (answers) => {
    const before = answers.length;
    postgres.kill('SIGKILL');
    await eventually(() => answers.slice(before).some(({ status }) => status === 503));
    // The child processes exit a moment later and hold the lock on the data directory until then.
    await eventually(() => postgres.restart().then(() => true), { intervalMs: 200 });
  });
});

test('a PostgreSQL that freezes for three seconds causes only 503 responses, and every process survives it', async () => {
  await survives(async () => {
    postgres.freeze();
    await new Promise((resolve) => setTimeout(resolve, 3000));
    postgres.thaw();
  });
});

test('a PostgreSQL that is temporarily read-only causes only 503 responses, and every process survives it', async () => {
  const setReadOnly = async (value: 'on' | 'off') => {
    await stack.database.prisma.$executeRawUnsafe(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
    await stack.database.prisma.$queryRaw`SELECT pg_reload_conf()`;
  };
  const counts = await survives(async (answers) => {
    await setReadOnly('on');
    await eventually(() => answers.some(({ status }) => status === 503));
    // Reads still succeed.
    const since = answers.length;
    await eventually(() => answers.slice(since).length > 20);
    await setReadOnly('off');
  });
  expect(counts['503']).toBeGreaterThan(0);
});
