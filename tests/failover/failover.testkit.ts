import { expect } from '@jest/globals';
import {
  eventually,
  startTestNginx,
  startTestPostgres,
  startTestSentinels,
  startTestStandby,
  type TestApp,
  type TestNginx,
  type TestPostgres,
  type TestSentinels,
} from '@callplane/testing';
import pg from 'pg';
import { startReceiver, startWebhookStack, type Receiver, type WebhookStack } from '../faults/webhooks.testkit.js';
import { Load } from '../fleet/load.testkit.js';

/** Shorter than in production, so that a test waits less for work whose outcome was lost. */
const LEASE_MS = '6000';
/** How often a probe asks, in milliseconds. */
const PROBE_EVERY_MS = 100;

/** A whole Callplane on servers that fail over: PostgreSQL with a synchronous standby, Redis with Sentinels. */
export interface Stage {
  stack: WebhookStack;
  primary: TestPostgres;
  standby: TestPostgres;
  redis: TestSentinels;
  nginx: TestNginx;
  apps: TestApp[];
  api: TestApp;
  receiver: Receiver;
  load?: Load;
}

/** A migrated database on a PostgreSQL with a standby. The URL names both. */
export async function startPostgresPair(): Promise<{ primary: TestPostgres; standby: TestPostgres; url: string }> {
  const primary = await startTestPostgres();
  const { url } = await primary.createDatabase();
  const standby = await startTestStandby(primary, 's1');
  const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`;
  return { primary, standby, url: `${url.replace(/@[^/]*/, `@${hosts}`)}?target_session_attrs=read-write` };
}

export async function startStage(): Promise<Stage> {
  const [{ primary, standby, url }, redis, receiver] = await Promise.all([
    startPostgresPair(),
    startTestSentinels(),
    startReceiver(),
  ]);
  await waitForStandby(primary);
  const stack = await startWebhookStack(url);
  const env = {
    REDIS_URL: redis.url,
    REDIS_SENTINEL_PASSWORD: redis.sentinelPassword,
    DATABASE_POOL_MAX: '5',
    SWEEP_INTERVAL_MS: '1000',
    LEASE_MS,
  };
  const apps = await Promise.all([
    stack.spawnApi(env),
    stack.spawnSignaling(env),
    stack.spawnWorker(env),
    stack.spawnWebhookWorker(env),
  ]);
  const [api, gateway] = apps;
  const nginx = await startTestNginx({ api: [portOf(api)], signaling: [portOf(gateway)] });
  await stack.register(api, receiver);
  return { stack, primary, standby, redis, nginx, apps, api, receiver };
}

/** Ends its apps and servers, so that they take no processor time from the next stage. */
export async function endStage({ load, apps, nginx, primary, standby, redis }: Stage): Promise<void> {
  const servers = [primary, standby, ...redis.servers, ...redis.sentinels];
  // Frozen servers cannot be stopped.
  for (const server of servers) server.thaw();
  await load?.close();
  await Promise.all(apps.map((app) => app.stop()));
  await Promise.all([nginx, ...servers].map((server) => server.stop()));
}

export const portOf = (app: TestApp): number => Number(new URL(app.url).port);

/** From now on, no commit is acknowledged before the standby has it. */
export async function waitForStandby(primary: TestPostgres): Promise<void> {
  await asSuperuser(primary, async (client) => {
    await client.query(`ALTER SYSTEM SET synchronous_standby_names = 's1'`);
    await client.query('SELECT pg_reload_conf()');
    await eventually(async () => {
      const { rowCount } = await client.query(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`);
      return rowCount === 1;
    });
  });
}

/** Resolves when the standby accepts writes. */
export function promote(standby: TestPostgres): Promise<void> {
  return asSuperuser(standby, async (client) => {
    await client.query('SELECT pg_promote(true, 600)');
  });
}

export async function asSuperuser(server: TestPostgres, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client(server.url);
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

export interface Outcome {
  /** From the end of the fault until each kind of work was done again. */
  recoveredMs: { rest: number; join: number; delivery: number };
  rooms: number;
  sessions: number;
  deliveries: number;
  refused: number;
}

/**
 * Runs `fault` under REST, webhook and call load, and checks that nothing was lost.
 * @param fault resolves when the servers can be reached again.
 */
export async function survive(stage: Stage, places: number, fault: () => Promise<void>): Promise<Outcome> {
  const { stack, nginx, receiver } = stage;
  const load = new Load({ url: nginx.url, key: stack.tenant.key });
  stage.load = load;
  const running = load.start(places);
  await eventually(() => {
    expect(load.failures).toEqual([]);
    return receiver.requests.length > 10 && load.sessionIds.size >= places * 3;
  });
  await fault();
  const recoveredMs = await recoveryOf(stage, load);
  load.stop();
  await running;
  const refused = await checkNothingLost(stage, load);
  return {
    recoveredMs,
    rooms: load.rooms.length,
    sessions: load.sessionIds.size,
    deliveries: receiver.requests.length,
    refused,
  };
}

/** Waits until requests, joins and deliveries that began after the fault have succeeded. */
async function recoveryOf({ receiver }: Stage, load: Load): Promise<Outcome['recoveredMs']> {
  const startedAtMs = performance.now();
  const sinceFault = () => performance.now() - startedAtMs;
  const roomId = await load.newRoom();
  const rest = sinceFault();
  const joined = load.join(roomId, 'Probe').then((call) => ({ call, ms: sinceFault() }));
  const delivered = eventually(() => receiver.rooms('room.created').has(roomId), {
    timeoutMs: 120_000,
    intervalMs: PROBE_EVERY_MS,
  }).then(sinceFault);
  const [{ call, ms: join }, delivery] = await Promise.all([joined, delivered]);
  await call.leave();
  return { rest, join, delivery };
}

/** @returns how many requests got 503. */
export async function checkNothingLost(
  { stack, apps, receiver }: Pick<Stage, 'stack' | 'apps' | 'receiver'>,
  load: Load,
): Promise<number> {
  const { prisma } = stack.database;
  expect(load.failures).toEqual([]);
  const failed = [...load.statuses.keys()].filter((status) => status >= 500 && status !== 503);
  expect(failed).toEqual([]);
  const rooms = await prisma.room.findMany({ select: { id: true, status: true } });
  expect(rooms.map(({ id }) => id)).toEqual(expect.arrayContaining(load.rooms));
  const sessions = await prisma.participantSession.findMany({ select: { id: true, endReason: true } });
  expect(sessions.map(({ id }) => id)).toEqual(expect.arrayContaining([...load.sessionIds]));
  // All clients and gateways live on, so no session counts as lost.
  const lost = sessions.filter(({ id, endReason }) => load.sessionIds.has(id) && endReason === 'connection_lost');
  expect(lost).toEqual([]);
  await eventually(
    async () => (await prisma.runtimeOperation.count({ where: { status: { not: 'completed' } } })) === 0,
    { timeoutMs: 120_000, intervalMs: 250 },
  );
  await stack.allDelivered(120_000);
  expect([...receiver.rooms('room.created').keys()].sort()).toEqual(rooms.map(({ id }) => id).sort());
  receiver.check();
  for (const app of apps) {
    expect(await Promise.race([app.exited, Promise.resolve('runs')])).toBe('runs');
    expect(app.output()).not.toContain('process failed');
  }
  return load.statuses.get(503) ?? 0;
}
