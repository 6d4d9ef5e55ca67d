import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  appMain,
  copyPostgres,
  eventually,
  startTestPostgres,
  stopAtEnd,
  temporaryDirectory,
  TEST_ENCRYPTION_KEYS,
  type TestApp,
  type TestPostgres,
} from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { startReceiver, startWebhookStack, type Receiver, type WebhookStack } from './faults/webhooks.testkit.js';

/**
 * Tests the physical backup of docs/operations/backup.md, from running apps to running apps. The restored deployment
 * starts with an empty Redis. packages/migrations/src/checks.test.ts restores events into a younger cluster.
 */

/** The state of a deployment as its callers knew it before it was lost. */
interface Known {
  key: string;
  rooms: string[];
  ending: string;
  events: string[];
  cursor: string;
  kids: string[];
}

const EVENTS_PER_PAGE = 7;
const PATIENT = { timeoutMs: 240_000, intervalMs: 250 };

test('a deployment continues from a physical backup of a running server', async () => {
  const [source, receiver] = await Promise.all([startTestPostgres(), startReceiver()]);
  const sourceUrl = (await source.createDatabase()).url;
  const { look, stop, makeRoom } = await deployment(sourceUrl, receiver);

  // Sends requests while the files are copied: pages may be torn, and recovery restores them from the write-ahead log.
  const backup = join(temporaryDirectory('backup'), 'data');
  stopAtEnd(async () => rmSync(join(backup, '..'), { recursive: true, force: true }));
  const known = await withRequests(makeRoom, () => copyPostgres(source.url, source.dataDir, backup, look));
  expect(known.rooms.length).toBeGreaterThan(15);
  await stop();
  await source.stop();

  const restored = await startTestPostgres(backup);
  const url = onServer(restored, sourceUrl);
  expect(rtc(url, 'db', 'migrate')).toBe('No pending migrations.');
  await goesOn(url, known, receiver);
});

/**
 * Apps with rooms, an endpoint with succeeded deliveries and with deliveries that wait for a retry, and an operation
 * that no worker has claimed.
 */
async function deployment(url: string, receiver: Receiver) {
  const stack = await startWebhookStack(url);
  const [api, worker] = await Promise.all([
    stack.spawnApi(),
    // A delivery that is being sent during the copy is still leased in the copy, until the lease expires.
    stack.spawnWebhookWorker({ LEASE_MS: '6000' }),
  ]);
  const { key } = stack.tenant;
  await stack.register(api, receiver);
  const rooms: string[] = [];
  const makeRoom = async () => void rooms.push(await stack.newRoom(api));
  for (let i = 0; i < 10; i++) await makeRoom();
  // The events were written without a wake-up; a scan finds them within 15 s.
  await stack.allDelivered();
  const cursor = (await eventsAfter(stack, api, key)).cursor;

  receiver.answer = () => 503;
  for (let i = 0; i < 5; i++) await makeRoom();
  await eventually(async () => (await stack.database.prisma.webhookAttempt.count({ where: { statusCode: 503 } })) >= 5);
  // Without a cleanup worker, the operation stays pending.
  const ending = rooms[3]!;
  const ended = await stack.call(api, 'DELETE', `/v1/rooms/${ending}`, { prefer: 'wait=0' });
  expect(ended.status).toBe(202);
  const token = await stack.call(api, 'POST', `/v1/rooms/${rooms[0]!}/tokens`, { body: { participantName: 'Ada' } });
  expect(token.status).toBe(201);

  return {
    makeRoom,
    look: async (): Promise<Known> => {
      const [kids, accepted] = [await kidsOf(api), [...rooms]];
      const { ids: events } = await eventually(async () => {
        const found = await eventsAfter(stack, api, key);
        return accepted.every((id) => found.rooms.includes(id)) ? found : null;
      });
      return { key, rooms: accepted, ending, cursor, kids, events };
    },
    stop: async () => {
      await Promise.all([api.stop(), worker.stop()]);
      await stack.database.close();
    },
  };
}

/** Checks that all known data exists, that pending work completes, and that new events follow the old ones. */
async function goesOn(url: string, known: Known, receiver: Receiver): Promise<void> {
  const { key } = known;
  receiver.answer = () => 200;
  const stack = await startWebhookStack(url);
  const [api] = await Promise.all([stack.spawnApi(), stack.spawnWebhookWorker(), stack.spawnWorker()]);

  // The API keys work, and the same signing keys can be decrypted and sign new tokens.
  expect((await stack.call(api, 'GET', '/v1/', { key })).status).toBe(200);
  expect(await kidsOf(api)).toEqual(known.kids);
  const path = `/v1/rooms/${known.rooms[1]!}`;
  const { status, body } = await stack.call(api, 'POST', `${path}/tokens`, { key, body: { participantName: 'Bob' } });
  expect(status).toBe(201);
  const [header = ''] = String(body.token).split('.');
  expect(known.kids).toContain(JSON.parse(Buffer.from(header, 'base64url').toString()).kid);
  for (const id of known.rooms) expect((await stack.call(api, 'GET', `/v1/rooms/${id}`, { key })).status).toBe(200);

  // The pending operation completes. `check` verifies each signature with the secret from registration, which shows
  // that the restored secret can be decrypted.
  await stack.completed(known.ending);
  const fresh = await stack.call(api, 'POST', '/v1/rooms', { key, body: { name: 'After' } });
  expect(fresh.status).toBe(201);
  // The restored deliveries had no wake-up; a scan finds them within 15 s. Attempts may time out on a busy machine: the
  // test does not wait for the contract's delays of up to 120 s then.
  await eventually(async () => {
    const delayed = { status: 'pending', dueAt: { gt: new Date(Date.now() + 1000) } } as const;
    await stack.database.prisma.webhookDelivery.updateMany({ where: delayed, data: { dueAt: new Date() } });
    return (await stack.database.prisma.webhookDelivery.count({ where: { status: { not: 'succeeded' } } })) === 0;
  }, PATIENT);
  receiver.check();
  const delivered = new Set(receiver.requests.map(({ event }) => event.id));

  // The event list has no gap: the old events come first, the new ones follow, and an old cursor skips none.
  const all = await eventually(async () => {
    const { ids, rooms } = await eventsAfter(stack, api, key);
    return rooms.includes(String(fresh.body.id)) ? { ids, rooms } : null;
  });
  expect(new Set(all.ids).size).toBe(all.ids.length);
  expect(all.ids.slice(0, known.events.length)).toEqual(known.events);
  const { ids: since } = await eventsAfter(stack, api, key, known.cursor);
  expect(since).toEqual(all.ids.slice(-since.length));
  expect(since.length).toBe(all.ids.length - 10);
  expect(all.ids.filter((id) => !delivered.has(id))).toEqual([]);
  const ofRoom = await stack.call(api, 'GET', `/v1/events?roomId=${known.ending}`, { key });
  expect((ofRoom.body.data as { sequence: number }[]).map(({ sequence }) => sequence)).toEqual([1, 2]);

  const doctor = JSON.parse(rtc(url, 'doctor', '--json')) as { data: { check: string; status: string }[] };
  const failures = doctor.data.filter(({ status: found }) => found === 'failure');
  expect(failures).toEqual([]);
}

/** All events after a cursor, over all pages. */
async function eventsAfter(stack: WebhookStack, api: TestApp, key: string, from = '') {
  const [ids, rooms]: [string[], string[]] = [[], []];
  for (let cursor = from; ;) {
    const after = cursor === '' ? '' : `&after=${encodeURIComponent(cursor)}`;
    const { status, body } = await stack.call(api, 'GET', `/v1/events?limit=${EVENTS_PER_PAGE}${after}`, { key });
    expect(status).toBe(200);
    for (const event of body.data) {
      ids.push(String(event.id));
      rooms.push(String(event.data.room?.id));
    }
    if (body.nextCursor === null) return { ids, rooms, cursor };
    cursor = String(body.nextCursor);
  }
}

async function kidsOf(api: TestApp): Promise<string[]> {
  const { keys } = (await (await fetch(`${api.url}/.well-known/jwks.json`)).json()) as { keys: { kid: string }[] };
  return keys.map(({ kid }) => kid).sort();
}

async function withRequests<T>(request: () => Promise<void>, work: () => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const busy = (async () => {
    while (!stop.signal.aborted) await request();
  })();
  try {
    return await work();
  } finally {
    stop.abort();
    await busy;
  }
}

/** The URL of the same database on another server. */
function onServer(server: TestPostgres, databaseUrl: string): string {
  const url = new URL(server.url);
  url.pathname = new URL(databaseUrl).pathname;
  return url.href;
}

function rtc(databaseUrl: string, ...args: string[]): string {
  const env = { PATH: process.env['PATH'], DATABASE_URL: databaseUrl, ENCRYPTION_KEYS: TEST_ENCRYPTION_KEYS };
  return execFileSync(process.execPath, [appMain('cli'), ...args], { env, encoding: 'utf8' }).trim();
}
