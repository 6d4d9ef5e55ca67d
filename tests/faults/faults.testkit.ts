import { newId } from '@callplane/core';
import { Database, type Prisma } from '@callplane/db';
import { JobProducer } from '@callplane/queue';
import {
  createTestDatabase,
  createTestTenant,
  eventually,
  spawnApp,
  startTestRedis,
  stopAtEnd,
  type TestApp,
  type TestServer,
  type TestTenant,
} from '@callplane/testing';

export interface Answer {
  status: number;
  headers: Headers;
  // A test says what it expects in it.
  body: any;
  ms: number;
}

export interface Sent {
  body?: object;
  prefer?: string;
  idempotencyKey?: string;
  key?: string;
}

export type Operation = NonNullable<Awaited<ReturnType<Database['prisma']['runtimeOperation']['findUnique']>>>;

/** PostgreSQL, Redis and a tenant of one test file, and the apps as processes in front of them. */
export interface Stack {
  databaseUrl: string;
  database: Database;
  redis: TestServer;
  tenant: TestTenant;
  /** For jobs that a test sends by hand. */
  producer: JobProducer;
  /** Rate limits are off unless `env` turns them on. */
  spawnApi(env?: Record<string, string>, readyWithinMs?: number): Promise<TestApp>;
  /** Sweeps five times a second unless `env` says otherwise. */
  spawnWorker(env?: Record<string, string>, readyWithinMs?: number): Promise<TestApp>;
  /** A gateway, without a media server unless `env` names one. */
  spawnSignaling(env?: Record<string, string>, readyWithinMs?: number): Promise<TestApp>;
  call(api: TestApp, method: string, path: string, sent?: Sent): Promise<Answer>;
  /** A room made through the API. */
  newRoom(api: TestApp): Promise<string>;
  /** Participants that are in a session, as the signalling gateway will write them. */
  join(roomId: string, count?: number): Promise<string[]>;
  operationOf(roomId: string): Promise<Operation | null>;
  completed(roomId: string, timeoutMs?: number): Promise<Operation>;
  /** Lets `seconds` pass for the wake-ups, so that a test need not wait until the sweep counts them as unanswered. */
  ageWakeUps(seconds?: number): Promise<void>;
  /** Holds the participants of these rooms, so that the steps of a clean-up wait, until `work` is over. */
  holding<T>(roomIds: readonly string[], work: (tx: Prisma.TransactionClient) => Promise<T>): Promise<T>;
}

/** @param databaseUrl of a PostgreSQL of the test's own; the run's shared one otherwise. */
export async function startStack(databaseUrl?: string): Promise<Stack> {
  const [url, redis] = await Promise.all([
    databaseUrl ?? createTestDatabase().then((database) => database.url),
    startTestRedis(),
  ]);
  const database = new Database({ url, poolMax: 5, onConnectionError: () => undefined });
  const producer = new JobProducer(redis.url, { onLost: () => undefined, onReady: () => undefined });
  stopAtEnd(() => Promise.all([producer.close(), database.close()]));
  const tenant = await createTestTenant(database);
  const env = { DATABASE_URL: url, REDIS_URL: redis.url };

  const stack: Stack = {
    databaseUrl: url,
    database,
    redis,
    tenant,
    producer,
    spawnApi: (more, readyWithinMs = 20_000) =>
      spawnApp({
        name: 'api',
        readyWithinMs,
        env: { ...env, RATE_LIMIT_READS_PER_SECOND: '0', RATE_LIMIT_WRITES_PER_SECOND: '0', ...more },
      }),
    spawnWorker: (more, readyWithinMs = 20_000) =>
      spawnApp({ name: 'cleanup-worker', readyWithinMs, env: { ...env, SWEEP_INTERVAL_MS: '200', ...more } }),
    spawnSignaling: (more, readyWithinMs = 20_000) =>
      spawnApp({ name: 'signaling', readyWithinMs, env: { ...env, ...more } }),
    async call(api, method, path, { body, prefer, idempotencyKey, key = tenant.key } = {}) {
      const startedAt = performance.now();
      const response = await fetch(`${api.url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(prefer === undefined ? {} : { prefer }),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        body: text === '' ? null : JSON.parse(text),
        ms: performance.now() - startedAt,
      };
    },
    async newRoom(api) {
      const { status, body } = await stack.call(api, 'POST', '/v1/rooms', { body: { name: 'Room' } });
      if (status !== 201) throw new Error(`POST /v1/rooms answered ${status}`);
      return String(body.id);
    },
    async join(roomId, count = 1) {
      const now = new Date();
      const { environmentId } = tenant;
      const ids = Array.from({ length: count }, () => newId('participant'));
      await database.prisma.participant.createMany({
        data: ids.map((id) => ({
          id,
          environmentId,
          roomId,
          name: 'Ada',
          metadata: {},
          role: 'participant',
          createdAt: now,
          tokenExpiresAt: new Date(now.getTime() + 600_000),
          connectedAt: now,
        })),
      });
      await database.prisma.participantSession.createMany({
        data: ids.map((participantId) => ({
          id: newId('session'),
          environmentId,
          roomId,
          participantId,
          startedAt: now,
        })),
      });
      return ids;
    },
    operationOf: (roomId) => database.prisma.runtimeOperation.findFirst({ where: { roomId, kind: 'room.end' } }),
    completed: (roomId, timeoutMs = 15_000) =>
      eventually(
        async () => {
          const operation = await stack.operationOf(roomId);
          return operation?.status === 'completed' ? operation : null;
        },
        { timeoutMs },
      ),
    async ageWakeUps(seconds = 10) {
      await database.prisma.$executeRaw`
        UPDATE runtime_operations SET woken_at = woken_at - ${seconds}::int * interval '1 second'
        WHERE status = 'pending'`;
    },
    holding: (roomIds, work) =>
      database.transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 FROM participants WHERE room_id = ANY(${[...roomIds]}) FOR UPDATE`;
        return work(tx);
      }),
  };
  return stack;
}

/** Lines that tell of attempts. */
export function attemptsIn(...apps: TestApp[]) {
  return apps.flatMap((app) => app.logs.filter(({ message }) => message === 'operation attempt'));
}

/** Prints what a test measured; the figures in docs/ come from here. */
export function measured(figures: Record<string, number | string>): void {
  const shown = Object.entries(figures).map(
    ([name, value]) => `${name} ${typeof value === 'number' ? Math.round(value) : value}`,
  );
  process.stderr.write(`    measured: ${shown.join(', ')}\n`);
}
