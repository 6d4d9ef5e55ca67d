import { beforeAll, expect, test } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually, startTestPostgres, startTestStandby, type TestApp, type TestPostgres } from '@callplane/testing';
import pg from 'pg';
import { measured, type Answer } from './faults.testkit.js';
import {
  closedGate,
  deliveriesIn,
  startReceiver,
  startWebhookStack,
  type Receiver,
  type WebhookStack,
} from './webhooks.testkit.js';

/** Outages of the API and of PostgreSQL under load. */

const CALLERS = 8;
const STANDBY = 's1';
/** Settings that differ from production, so that a test waits less for work whose outcome was lost. */
const ENV = { LEASE_MS: '6000' };

let postgres: TestPostgres;
let standby: TestPostgres;
let stack: WebhookStack;
let receiver: Receiver;
let api: TestApp;
let workers: [cleaner: TestApp, sender: TestApp];
beforeAll(async () => {
  postgres = await startTestPostgres();
  const { url } = await postgres.createDatabase();
  standby = await startTestStandby(postgres, STANDBY);
  const hosts = `127.0.0.1:${postgres.port},127.0.0.1:${standby.port}`;
  const both = `${url.replace(/@[^/]*/, `@${hosts}`)}?target_session_attrs=read-write`;
  [stack, receiver] = await Promise.all([startWebhookStack(both), startReceiver()]);
  [api, ...workers] = await Promise.all([stack.spawnApi(), stack.spawnWorker(ENV), stack.spawnWebhookWorker(ENV)]);
  await stack.register(api, receiver);
});

/** The answers to callers who create rooms, read them, issue tokens and end the rooms, until `stop`. */
function startLoad() {
  const answers: Answer[] = [];
  const created = new Set<string>();
  const ended = new Set<string>();
  let unanswered = 0;
  let isStopped = false;
  const call = async (method: string, path: string, sent = {}) => {
    const answer = await stack.call(api, method, path, sent).catch(() => undefined);
    if (answer === undefined) {
      unanswered += 1;
      // A dead API refuses connections at once.
      await delay(50);
    } else answers.push(answer);
    return answer;
  };
  const callers = Array.from({ length: CALLERS }, async () => {
    while (!isStopped) {
      const made = await call('POST', '/v1/rooms', { body: { name: 'Room' } });
      if (made?.status !== 201) continue;
      const roomId = String(made.body.id);
      created.add(roomId);
      const path = `/v1/rooms/${roomId}`;
      await call('GET', path);
      await call('POST', `${path}/tokens`, { body: { participantName: 'Ada' } });
      const end = await call('DELETE', path, { prefer: 'respond-async' });
      if (end !== undefined && end.status < 300) ended.add(roomId);
    }
  });
  return {
    answers,
    created,
    ended,
    unanswered: () => unanswered,
    stop: async () => {
      isStopped = true;
      await Promise.all(callers);
    },
  };
}

const refusals = (answers: readonly Answer[]) => answers.filter(({ status }) => status === 503).length;

/** Each resolves when requests can succeed again. */
const OUTAGES: Record<string, (answers: readonly Answer[]) => Promise<void>> = {
  'PostgreSQL restarts': async () => {
    await answeredMeanwhile(() => postgres.kill('SIGINT'));
    await postgres.restart();
  },
  'PostgreSQL crashes': async () => {
    await answeredMeanwhile(() => postgres.kill('SIGKILL'));
    // The child processes exit a moment later and hold the lock on the data directory until then.
    await eventually(() => postgres.restart().then(() => true), { intervalMs: 200 });
  },
  'PostgreSQL freezes for three seconds': async () => {
    postgres.freeze();
    await delay(3000);
    postgres.thaw();
  },
  'PostgreSQL is read-only for a moment': async (answers) => {
    const setReadOnly = (value: 'on' | 'off') =>
      asSuperuser(postgres, async (client) => {
        await client.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
        await client.query('SELECT pg_reload_conf()');
      });
    const before = refusals(answers);
    await setReadOnly('on');
    await eventually(() => refusals(answers) > before);
    await setReadOnly('off');
  },
  'the API is killed': async () => {
    api.kill('SIGKILL');
    await api.exited;
    api = await stack.spawnApi();
  },
  // The last one: the first server stays dead.
  'PostgreSQL is killed, and its standby promoted': async () => {
    await waitForStandby(postgres);
    await answeredMeanwhile(() => postgres.kill('SIGKILL'));
    // Resolves when the standby accepts writes.
    await asSuperuser(standby, (client) => client.query('SELECT pg_promote(true, 600)'));
  },
};

/** From now on, no commit is acknowledged before the standby has it. */
async function waitForStandby(primary: TestPostgres): Promise<void> {
  await asSuperuser(primary, async (client) => {
    await client.query(`ALTER SYSTEM SET synchronous_standby_names = '${STANDBY}'`);
    await client.query('SELECT pg_reload_conf()');
    await eventually(async () => {
      const { rowCount } = await client.query(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`);
      return rowCount === 1;
    });
  });
}

async function asSuperuser(server: TestPostgres, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client(server.url);
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

/** Runs `fault` while requests of webhooks are in flight, which are answered while PostgreSQL is down. */
async function answeredMeanwhile(fault: () => void): Promise<void> {
  const gate = closedGate();
  let held = 0;
  receiver.answer = () => {
    held += 1;
    return gate.opened.then(() => 200);
  };
  await eventually(() => held >= 2);
  fault();
  // When the API has lost its database, the workers have lost theirs as well.
  await eventually(async () => (await fetch(`${api.url}/readyz`)).status === 503);
  receiver.answer = () => 200;
  gate.open();
}

test.each(Object.keys(OUTAGES))('nothing accepted is lost and no process ends when %s', async (name) => {
  const load = startLoad();
  const known = receiver.requests.length;
  let backMs: number;
  try {
    await eventually(() => load.answers.length > 50 && receiver.requests.length > known + 20);
    await OUTAGES[name]!(load.answers);
    const [since, sent] = [load.answers.length, receiver.requests.length];
    const backAtMs = performance.now();
    await eventually(() => load.answers.slice(since).filter(({ status }) => status < 300).length > 50);
    await eventually(() => receiver.requests.length > sent + 20);
    backMs = performance.now() - backAtMs;
  } finally {
    await load.stop();
  }
  measured({
    accepted: load.created.size,
    'refused with 503': refusals(load.answers),
    unanswered: load.unanswered(),
    'ms until 50 more succeed': backMs,
  });
  expect(load.unanswered() > 0).toBe(name === 'the API is killed');
  for (const { status, headers, body } of load.answers.filter((answer) => answer.status >= 300)) {
    expect({ status, body }).toEqual({
      status: 503,
      body: { error: { code: 'UNAVAILABLE', message: expect.any(String), requestId: headers.get('x-request-id') } },
    });
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  }
  await checkNothingLost(load);
});

async function checkNothingLost({ created, ended }: ReturnType<typeof startLoad>): Promise<void> {
  const { prisma } = stack.database;
  await eventually(async () => {
    const open = await prisma.runtimeOperation.findMany({ where: { status: { not: 'completed' } } });
    expect(open).toEqual([]);
    return true;
  });
  await stack.allDelivered();
  const rooms = await prisma.room.findMany({ select: { id: true, status: true }, orderBy: { id: 'asc' } });
  const idsOf = (status?: string) =>
    rooms.filter((room) => room.status === (status ?? room.status)).map(({ id }) => id);
  expect(idsOf()).toEqual(expect.arrayContaining([...created]));
  expect(idsOf('ended')).toEqual(expect.arrayContaining([...ended]));
  // Each change has its event, also the ones whose answer was lost.
  expect([...receiver.rooms('room.created').keys()].sort()).toEqual(idsOf());
  expect([...receiver.rooms('room.ended').keys()].sort()).toEqual(idsOf('ended'));
  receiver.check();
  // An event arrives again only if the worker could not settle its delivery, or the crash undid the claim. The worker may
  // log the lost lease a moment later.
  const again = [...receiver.counts()].filter(([, count]) => count > 1).map(([id]) => id);
  await eventually(async () => {
    const late = deliveriesIn(...workers).filter((line) => line['status'] === 'lease_lost');
    const lost = new Set([...(await stack.leasesLost()).keys(), ...late.map((line) => String(line['eventId']))]);
    expect(again.filter((id) => !lost.has(id))).toEqual([]);
    return true;
  });
  const urls = [api.url, ...workers.map(({ healthUrl }) => healthUrl)];
  const ready = await Promise.all(urls.map((url) => fetch(`${url}/readyz`)));
  expect(ready.map(({ status }) => status)).toEqual([200, 200, 200]);
  for (const app of [api, ...workers]) expect(app.output()).not.toContain('process failed');
}
