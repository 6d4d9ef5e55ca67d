import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually, setUsers, spawnApp, startTestPostgres, startTestRedis, type TestApp } from '@callplane/testing';
import { connectClient } from './client.testkit.js';
import { resumptionOf, startTestSignaling, type TestSignaling } from './signaling.testkit.js';

let kit: TestSignaling;
/** Each start of an app costs a second of processor time, so tests that end one come last. */
let apps: TestApp[];
beforeAll(async () => {
  kit = await startTestSignaling({ redis: await startTestRedis() });
  apps = await Promise.all([1, 2, 3].map(() => spawn(kit)));
});

const spawn = (of: TestSignaling, env: Record<string, string> = {}) =>
  spawnApp({ name: 'signaling', env: { DATABASE_URL: of.databaseUrl, REDIS_URL: of.redis.url, ...env } });
const measured = (what: string) => process.stderr.write(`    measured: ${what}\n`);

describe('while Redis is unavailable', () => {
  test('participants join, and other instances learn of it by the next resync', async () => {
    const roomId = await kit.newRoom();
    const bob = await kit.enter(apps[0]!.url, roomId);
    await kit.redis.stop();
    try {
      const startedAt = performance.now();
      const ada = await kit.enter(apps[1]!.url, roomId);
      expect(ada.welcome.participants).toHaveLength(1);
      // An attempt to publish takes 0.5 s at most; without a deadline it would last as long as the outage.
      expect(performance.now() - startedAt).toBeLessThan(15_000);
      await bob.client.untilOthers((others) => others.has(ada.participantId));
      measured(`presence without Redis ${Math.round(performance.now() - startedAt)} ms`);
      expect(await ada.client.ask({ type: 'message', data: 1 }, 'error')).toMatchObject({ code: 'unavailable' });
      // Participants on the same instance still exchange messages.
      const eve = await kit.enter(apps[1]!.url, roomId);
      await ada.client.untilOthers((others) => others.has(eve.participantId));
      await ada.client.ask({ type: 'message', data: 2, to: [eve.participantId] }, 'ok');
      await eve.client.until('message');
    } finally {
      await kit.redis.start();
    }
    // Once Redis is back, notices arrive at once again.
    await eventually(() =>
      apps.every((app) => app.logs.filter(({ message }) => message === 'redis connected').length >= 6),
    );
    const late = await kit.enter(apps[1]!.url, roomId);
    await bob.client.untilOthers((others) => others.has(late.participantId));
    await bob.client.ask({ type: 'message', data: 'x', to: [late.participantId] }, 'ok');
    await late.client.until('message');
  });
});

test('while Redis refuses subscriptions, clients stay, and learn of each other by the next resync', async () => {
  const roomId = await kit.newRoom();
  const bob = await kit.enter(apps[0]!.url, roomId);
  await setUsers(kit.redis, 'resetchannels');
  await apps[0]!.waitForLog(
    ({ message, connection }) => message === 'redis subscription refused' && connection === 'rooms',
  );
  const ada = await kit.enter(apps[1]!.url, roomId);
  await bob.client.untilOthers((others) => others.has(ada.participantId));
  expect(await (await fetch(`${apps[0]!.url}/readyz`)).json()).toMatchObject({ checks: { redis: 'refused' } });
  await setUsers(kit.redis, 'allchannels');
  await eventually(async () => {
    const health = await (await fetch(`${apps[0]!.url}/readyz`)).json();
    expect(health).toMatchObject({ checks: { redis: 'ok' } });
    return true;
  });
  expect(bob.client.closed).toBeNull();
  for (const app of apps) expect(app.output()).not.toContain('process failed');
});

test('the clients of a killed instance resume on others, and no participant leaves or joins', async () => {
  const doomed = apps[2]!;
  const roomId = await kit.newRoom();
  const bob = await kit.enter(apps[0]!.url, roomId);
  const all = await Promise.all(Array.from({ length: 8 }, () => kit.enter(doomed.url, roomId)));
  await bob.client.untilOthers((others) => others.size === 8);
  doomed.kill('SIGKILL');
  const resumed = await Promise.all(
    all.map(async ({ client, welcome }, n) => {
      await client.untilClosed();
      return kit.resume(apps[n % 2]!.url, welcome);
    }),
  );
  expect(resumed.every((welcome) => welcome.resumed && welcome.participants.length === 8)).toBe(true);
  await resumed[0]!.client.ask({ type: 'message', data: 'back' }, 'ok');
  await Promise.all(resumed.slice(1).map(({ client }) => client.until('message')));
  expect(bob.client.changes.filter(({ kind }) => kind === 'left')).toEqual([]);
  expect((await kit.events(roomId)).map(({ type }) => type)).toEqual([
    'room.started',
    ...Array(9).fill('participant.joined'),
  ]);
});

describe('while PostgreSQL is unavailable', () => {
  test('joins and resumptions are refused as unavailable, and existing connections stay', async () => {
    const postgres = await startTestPostgres();
    const { url: databaseUrl } = await postgres.createDatabase();
    const own = await startTestSignaling({ databaseUrl });
    const app = await spawn(own);
    const roomId = await own.newRoom();
    const [ada, bob] = [await own.enter(app.url, roomId), await own.enter(app.url, roomId)];
    const eve = await own.invite(roomId);
    await ada.client.untilOthers((others) => others.has(bob.participantId));
    postgres.kill('SIGKILL');
    const refused = await connectClient(app.url).catch((error: unknown) => {
      throw new Error(app.output(), { cause: error });
    });
    refused.send({ type: 'join', token: eve.token });
    expect(await refused.untilClosed('unavailable')).toMatchObject({ reconnect: 'resume' });
    const resuming = await connectClient(app.url);
    resuming.send(resumptionOf(ada.welcome));
    expect(await resuming.untilClosed('unavailable')).toMatchObject({ reconnect: 'resume' });
    await ada.client.ask({ type: 'message', data: 'still here' }, 'ok');
    await bob.client.until('message');
    expect(await ada.client.ask({ type: 'metadata', metadata: {} }, 'error')).toMatchObject({ code: 'unavailable' });
    // Longer than INSTANCE_DEAD_MS, after which the cleanup worker counts the instance as dead.
    await new Promise((resolve) => setTimeout(resolve, 9000));
    await postgres.start();
    await eventually(
      async () => {
        const client = await connectClient(app.url);
        client.send({ type: 'join', token: eve.token });
        await client.until('welcome');
        return true;
      },
      { intervalMs: 500 },
    );
    await bob.client.untilOthers((others) => others.has(eve.participantId));
    await ada.client.ask({ type: 'ping' }, 'pong');
    expect(ada.client.closed).toBeNull();
    await app.stop();
  });
});
