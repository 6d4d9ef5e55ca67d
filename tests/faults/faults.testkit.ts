import { Database, type TypedSql } from '@callplane/db';
import { JobProducer } from '@callplane/queue';
import {
  createTestDatabase,
  createTestTenant,
  eventually,
  gatewayUrlOf,
  participantRow,
  PATIENT_DEADLINES,
  roomRow,
  sessionRow,
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
  // Typed any: each test asserts the shape that it expects.
  body: any;
  ms: number;
}

interface Sent {
  body?: object;
  prefer?: string;
  traceparent?: string;
  key?: string;
}

type Operation = NonNullable<Awaited<ReturnType<Database['prisma']['runtimeOperation']['findUnique']>>>;

/** PostgreSQL, Redis and a tenant of one test file, and the apps as processes. */
export interface Stack {
  databaseUrl: string;
  database: Database;
  redis: TestServer;
  tenant: TestTenant;
  /** For jobs that a test enqueues directly. */
  producer: JobProducer;
  /** Rate limits are off unless `env` enables them. */
  spawnApi(env?: Record<string, string>): Promise<TestApp>;
  /** Scans and sweeps twice a second unless `env` sets another interval. Five times a second take 15 % of a core. */
  spawnWorker(env?: Record<string, string>): Promise<TestApp>;
  /** Starts a gateway, without a media server unless `env` names one. */
  spawnSignaling(env?: Record<string, string>): Promise<TestApp>;
  call(api: TestApp, method: string, path: string, sent?: Sent): Promise<Answer>;
  /** Creates a room through the API. */
  newRoom(api: TestApp): Promise<string>;
  /** Creates participants with an open session, as the gateway writes them. */
  join(roomId: string, count?: number): Promise<string[]>;
  /** Writes active rooms with one open session each, without requests, events or wake-ups. */
  seedRooms(count: number): Promise<string[]>;
  operationOf(roomId: string): Promise<Operation | null>;
  completed(roomId: string): Promise<Operation>;
  /** The completed ends of these rooms. Many waits for one room each would keep PostgreSQL busy. */
  allCompleted(roomIds: readonly string[]): Promise<Operation[]>;
  /** Locks the participants of these rooms until `work` ends, so that the steps of a cleanup wait. */
  holding<T>(roomIds: readonly string[], work: (tx: TypedSql) => Promise<T>): Promise<T>;
}

/** @param databaseUrl a PostgreSQL of the test's own; the shared one of the run by default. */
export async function startStack(databaseUrl?: string): Promise<Stack> {
  const [url, redis] = await Promise.all([
    databaseUrl ?? createTestDatabase().then((database) => database.url),
    startTestRedis(),
  ]);
  const database = new Database({ url, poolMax: 5, deadlines: PATIENT_DEADLINES, onConnectionError: () => undefined });
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
    spawnApi: (more) =>
      spawnApp({
        name: 'api',
        env: { ...env, RATE_LIMIT_READS_PER_SECOND: '0', RATE_LIMIT_WRITES_PER_SECOND: '0', ...more },
      }),
    spawnWorker: (more) => spawnApp({ name: 'cleanup-worker', env: { ...env, SWEEP_INTERVAL_MS: '500', ...more } }),
    spawnSignaling: (more) =>
      spawnApp({ name: 'signaling', env: { ...env, DATABASE_URL: gatewayUrlOf(url), ...more } }),
    async call(api, method, path, { body, prefer, traceparent, key = tenant.key } = {}) {
      const startedAt = performance.now();
      const response = await fetch(`${api.url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(prefer === undefined ? {} : { prefer }),
          ...(traceparent === undefined ? {} : { traceparent }),
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
    join: (roomId, count = 1) => openSessions(stack, Array<string>(count).fill(roomId)),
    async seedRooms(count) {
      const now = new Date();
      const data = Array.from({ length: count }, () => roomRow(tenant, { status: 'active', startedAt: now }));
      await database.prisma.room.createMany({ data });
      const ids = data.map(({ id }) => id);
      await openSessions(stack, ids);
      return ids;
    },
    operationOf: (roomId) => database.prisma.runtimeOperation.findFirst({ where: { roomId, kind: 'room.end' } }),
    completed: (roomId) =>
      eventually(async () => {
        const operation = await stack.operationOf(roomId);
        return operation?.status === 'completed' ? operation : null;
      }),
    allCompleted: (roomIds) =>
      eventually(async () => {
        const operations = await database.prisma.runtimeOperation.findMany({
          where: { roomId: { in: [...roomIds] }, kind: 'room.end', status: 'completed' },
        });
        return operations.length === roomIds.length ? operations : null;
      }),
    holding: (roomIds, work) =>
      database.transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 FROM participants WHERE room_id = ANY(${[...roomIds]}) FOR UPDATE`;
        return work(tx);
      }),
  };
  return stack;
}

/** Creates a participant with an open session for each entry of `roomIds`. Returns their ids. */
async function openSessions({ database, tenant }: Stack, roomIds: readonly string[]): Promise<string[]> {
  const participants = roomIds.map((roomId) => participantRow(tenant, roomId, { connectedAt: new Date() }));
  await database.prisma.participant.createMany({ data: participants });
  await database.prisma.participantSession.createMany({
    data: participants.map(({ id, roomId }) => sessionRow(tenant, { roomId, participantId: id })),
  });
  return participants.map(({ id }) => id);
}

/** Log lines of operation attempts. */
export function attemptsIn(...apps: TestApp[]) {
  return apps.flatMap((app) => app.logs.filter(({ message }) => message === 'operation attempt'));
}

/** Prints measured figures; docs/ quotes them. */
export function measured(figures: Record<string, number | string>): void {
  const shown = Object.entries(figures).map(
    ([name, value]) => `${name} ${typeof value === 'number' ? Math.round(value) : value}`,
  );
  process.stderr.write(`    measured: ${shown.join(', ')}\n`);
}
