import { PassThrough } from 'node:stream';
import { newId, type RoomStatus } from '@callplane/core';
import { acceptParticipantRemoval, acceptRoomEnd, Database, type AcceptedOperation } from '@callplane/db';
import { JobProducer } from '@callplane/queue';
import { createLogger, createMetrics } from '@callplane/runtime';
import {
  createTestDatabase,
  createTestTenant,
  startTestRedis,
  stopAtEnd,
  testClock,
  type LogLine,
  type TestClock,
  type TestServer,
  type TestTenant,
} from '@callplane/testing';
import type { Deps } from './deps.js';
import { operationMetrics } from './metrics.js';

/** When the clock of these tests stands; rows are written around it. */
export const NOON = new Date('2030-01-01T12:00:00.000Z');

export interface TestParticipant {
  connectedAt?: Date;
  leftAt?: Date;
  tokenExpiresAt?: Date;
  /** Has a session that goes on. */
  inSession?: boolean;
}

export interface TestWorker {
  deps: Deps;
  clock: TestClock;
  databaseUrl: string;
  redis: TestServer;
  tenant: TestTenant;
  /** Everything logged so far. */
  lines: LogLine[];
  /** As a scrape would show them. */
  metrics(): Promise<string>;
  newRoom(status?: RoomStatus): Promise<string>;
  newParticipant(roomId: string, participant?: TestParticipant): Promise<string>;
  endRoom(roomId: string): Promise<AcceptedOperation>;
  removeParticipant(roomId: string, participantId: string): Promise<AcceptedOperation>;
  /** A room whose end has been accepted; the operation's id. */
  newOperation(): Promise<string>;
  /** The whole row, lease included. */
  row(operationId: string): ReturnType<Database['prisma']['runtimeOperation']['findUniqueOrThrow']>;
  /** Runs SQL that stands for time passing, such as a lease that runs out. */
  sql(statement: string): Promise<unknown>;
}

/** What the worker's functions are given, with real PostgreSQL and Redis behind it. Closed when the test file ends. */
export async function startTestWorker({ leaseMs = 60_000 } = {}): Promise<TestWorker> {
  const [{ url }, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  const database = new Database({ url, poolMax: 25 });
  const producer = new JobProducer(redis.url, { onLost: () => undefined, onReady: () => undefined });
  await new Promise((resolve) => producer.redis.once('ready', resolve));
  stopAtEnd(() => Promise.all([producer.close(), database.close()]));

  const lines: LogLine[] = [];
  const stream = new PassThrough();
  stream.on('data', (line: Buffer) => lines.push(JSON.parse(line.toString()) as LogLine));
  const logger = createLogger({ LOG_LEVEL: 'debug', LOG_FORMAT: 'json' }, 'cleanup-worker', stream);
  const clock = testClock(NOON);
  const metrics = createMetrics({ app: 'cleanup-worker' });
  const deps: Deps = {
    ...{ database, producer, logger, clock, leaseMs },
    metrics: operationMetrics(metrics),
    random: Math.random,
  };
  const tenant = await createTestTenant(database);

  const worker: TestWorker = {
    deps,
    clock,
    databaseUrl: url,
    redis,
    tenant,
    lines,
    metrics: () => metrics.text(),
    async newRoom(status = 'active') {
      const id = newId('room');
      const { environmentId } = tenant;
      await database.prisma.room.create({
        data: {
          id,
          environmentId,
          name: 'Room',
          metadata: {},
          status,
          maxParticipants: 100,
          createdAt: NOON,
          startedAt: NOON,
        },
      });
      return id;
    },
    async newParticipant(roomId, { connectedAt, leftAt, tokenExpiresAt, inSession = false } = {}) {
      const id = newId('participant');
      const { environmentId } = tenant;
      await database.prisma.participant.create({
        data: {
          id,
          environmentId,
          roomId,
          name: 'Ada',
          metadata: {},
          role: 'participant',
          createdAt: before(60),
          tokenExpiresAt: tokenExpiresAt ?? after(600),
          connectedAt: connectedAt ?? null,
          leftAt: leftAt ?? null,
        },
      });
      if (inSession) {
        await database.prisma.participantSession.create({
          data: {
            id: newId('session'),
            environmentId,
            roomId,
            participantId: id,
            startedAt: connectedAt ?? before(30),
          },
        });
      }
      return id;
    },
    async endRoom(roomId) {
      const accepted = await acceptRoomEnd(database, tenant, roomId, clock.now());
      if (accepted === null) throw new Error(`no room ${roomId}`);
      return accepted;
    },
    async removeParticipant(roomId, participantId) {
      const accepted = await acceptParticipantRemoval(database, tenant, roomId, participantId, clock.now());
      if (accepted === null) throw new Error(`no participant ${participantId}`);
      return accepted;
    },
    async newOperation() {
      return (await worker.endRoom(await worker.newRoom())).operation.id;
    },
    row: (id) => database.prisma.runtimeOperation.findUniqueOrThrow({ where: { id } }),
    sql: (statement) => database.prisma.$executeRawUnsafe(statement),
  };
  return worker;
}

export function before(seconds: number): Date {
  return new Date(NOON.getTime() - seconds * 1000);
}

export function after(seconds: number): Date {
  return new Date(NOON.getTime() + seconds * 1000);
}
