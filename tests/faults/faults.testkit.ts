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

export type Stack = Awaited<ReturnType<typeof startStack>>;

/**
 * PostgreSQL, Redis and a tenant of one test file, and the apps as processes.
 * @param databaseUrl a PostgreSQL of the test's own; the shared one of the run by default.
 */
export async function startStack(databaseUrl?: string) {
  const [url, redis] = await Promise.all([
    databaseUrl ?? createTestDatabase().then((database) => database.url),
    startTestRedis(),
  ]);
  const database = new Database({ url, poolMax: 5, deadlines: PATIENT_DEADLINES, onConnectionError: () => undefined });
  const producer = new JobProducer(redis.url, { onLost: () => undefined, onReady: () => undefined });
  stopAtEnd(() => Promise.all([producer.close(), database.close()]));
  const tenant = await createTestTenant(database);
  const env = { DATABASE_URL: url, REDIS_URL: redis.url };

  /** Creates a participant with an open session for each entry of `roomIds`. Returns their ids. */
  const openSessions = async (roomIds: readonly string[]): Promise<string[]> => {
    const participants = roomIds.map((roomId) => participantRow(tenant, roomId, { connectedAt: new Date() }));
    await database.prisma.participant.createMany({ data: participants });
    await database.prisma.participantSession.createMany({
      data: participants.map(({ id, roomId }) => sessionRow(tenant, { roomId, participantId: id })),
    });
    return participants.map(({ id }) => id);
  };
  type Env = Record<string, string>;
  const stack = {
    databaseUrl: url,
    database,
    redis,
    tenant,
    /** For jobs that a test enqueues directly. */
    producer,
    /** Rate limits are off unless `more` enables them. */
    spawnApi: (more?: Env) =>
      spawnApp({
        name: 'api',
        env: { ...env, RATE_LIMIT_READS_PER_SECOND: '0', RATE_LIMIT_WRITES_PER_SECOND: '0', ...more },
      }),
    /** Scans and sweeps twice a second unless `more` sets another interval. Five times a second take 15 % of a core. */
    spawnWorker: (more?: Env) =>
      spawnApp({ name: 'cleanup-worker', env: { ...env, SWEEP_INTERVAL_MS: '500', ...more } }),
    /** Starts a gateway, without a media server unless `more` names one. */
    spawnSignaling: (more?: Env) =>
      spawnApp({ name: 'signaling', env: { ...env, DATABASE_URL: gatewayUrlOf(url), ...more } }),
    async call(
      api: TestApp,
      method: string,
      path: string,
      { body, prefer, traceparent, key = tenant.key }: Sent = {},
    ): Promise<Answer> {
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
    /** Creates a room through the API. */
    async newRoom(api: TestApp): Promise<string> {
      const { status, body } = await stack.call(api, 'POST', '/v1/rooms', { body: { name: 'Room' } });
      if (status !== 201) throw new Error(`POST /v1/rooms answered ${status}`);
      return String(body.id);
    },
    /** Creates participants with an open session, as the gateway writes them. */
    join: (roomId: string, count = 1) => openSessions(Array<string>(count).fill(roomId)),
    /** Writes active rooms with one open session each, without requests, events or wake-ups. */
    async seedRooms(count: number) {
      const now = new Date();
      const data = Array.from({ length: count }, () => roomRow(tenant, { status: 'active', startedAt: now }));
      await database.prisma.room.createMany({ data });
      const ids = data.map(({ id }) => id);
      await openSessions(ids);
      return ids;
    },
    operationOf: (roomId: string): Promise<Operation | null> =>
      database.prisma.runtimeOperation.findFirst({ where: { roomId, kind: 'room.end' } }),
    completed: (roomId: string): Promise<Operation> =>
      eventually(async () => {
        const operation = await stack.operationOf(roomId);
        return operation?.status === 'completed' ? operation : null;
      }),
    /** The completed ends of these rooms. Many waits for one room each would keep PostgreSQL busy. */
    allCompleted: (roomIds: readonly string[]) =>
      eventually(async () => {
        const operations = await database.prisma.runtimeOperation.findMany({
          where: { roomId: { in: [...roomIds] }, kind: 'room.end', status: 'completed' },
        });
        return operations.length === roomIds.length ? operations : null;
      }),
    /** Locks the participants of these rooms until `work` ends, so that the steps of a cleanup wait. */
    holding: <T>(roomIds: readonly string[], work: (tx: TypedSql) => Promise<T>) =>
      database.transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 FROM participants WHERE room_id = ANY(${[...roomIds]}) FOR UPDATE`;
        return work(tx);
      }),
  };
  return stack;
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
