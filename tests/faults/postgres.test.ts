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
}, 60_000);

/** Calls the API from several sides until `stop`; keeps every answer. */
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
  // Told by stop(), whenever it comes.
  ended.catch(() => undefined);
  return {
    answers,
    accepted,
    /** Throws when a call got no answer at all. */
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
    await eventually(() => traffic.answers.slice(since).filter(({ status }) => status < 300).length > 50, {
      timeoutMs: 15_000,
    });
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

  // Whatever was answered with 2xx is there and completes, without a restart of anything.
  await stack.ageWakeUps();
  await eventually(
    async () => {
      const open = await stack.database.prisma.runtimeOperation.findMany({ where: { status: { not: 'completed' } } });
      expect(open).toEqual([]);
      return true;
    },
    { timeoutMs: 30_000, intervalMs: 100 },
  );
  const ended = await stack.database.prisma.room.findMany({ where: { status: 'ended' }, select: { id: true } });
  const known = new Set(ended.map(({ id }) => id));
  expect([...accepted].filter((id) => !known.has(id))).toEqual([]);
  const ready = await Promise.all([`${api.url}/readyz`, `${worker.healthUrl}/readyz`].map((url) => fetch(url)));
  expect(ready.map(({ status }) => status)).toEqual([200, 200]);
  for (const app of [api, worker]) expect(app.output()).not.toContain('process fails');
  return counts;
}

test('a restart of PostgreSQL under load is answered with 503 and survived by every process', async () => {
  const counts = await survives(async (answers) => {
    postgres.kill('SIGINT');
    await eventually(() => answers.some(({ status }) => status === 503));
    await postgres.restart();
  });
  expect(counts['503']).toBeGreaterThan(0);
}, 60_000);

test('a crash of PostgreSQL likewise', async () => {
  await survives(async (answers) => {
    const before = answers.length;
    postgres.kill('SIGKILL');
    await eventually(() => answers.slice(before).some(({ status }) => status === 503));
    // Its children go a moment later, and with them the lock on the data directory.
    await eventually(() => postgres.restart().then(() => true), { intervalMs: 200 });
  });
}, 60_000);

test('a PostgreSQL that freezes for three seconds likewise', async () => {
  await survives(async () => {
    postgres.freeze();
    await new Promise((resolve) => setTimeout(resolve, 3000));
    postgres.thaw();
  });
}, 60_000);
