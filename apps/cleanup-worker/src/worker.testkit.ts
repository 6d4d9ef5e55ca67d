import { PassThrough } from 'node:stream';
import { type OperationKind, type RoomStatus } from '@callplane/core';
import {
  acceptParticipantMove,
  acceptParticipantRemoval,
  acceptRoomEnd,
  beat,
  Database,
  publishTracks,
  type AcceptedOperation,
} from '@callplane/db';
import { MediaNodes } from '@callplane/media';
import { Scan, workOnOperation as workOnKind, type Kinds } from '@callplane/operations';
import { JobProducer } from '@callplane/queue';
import { createLogger, createMetrics } from '@callplane/runtime';
import {
  execute,
  createTestDatabase,
  createTestTenant,
  eventually,
  inviteTestParticipant,
  joinOne,
  participantRow,
  PATIENT_DEADLINES,
  roomRow,
  sessionRow,
  startTestRedis,
  stopAtEnd,
  testClock,
  type LogLine,
} from '@callplane/testing';
import type { Deps } from './deps.js';
import { cleanupMetrics, relayMetrics } from './metrics.js';
import type { CleanUpStep } from './operations/shared-steps.js';
import { KINDS } from './operations/kinds.js';
import { createRelays, type TurnServer } from './relays/relays.js';

/** The fixed time of the clock in these tests. Rows get times relative to it. */
export const NOON = new Date('2030-01-01T12:00:00.000Z');

interface TestParticipant {
  connectedAt?: Date;
  leftAt?: Date;
  tokenExpiresAt?: Date;
  /** Whether the participant has a running session. */
  inSession?: boolean;
}

export type Entered = Awaited<ReturnType<TestWorker['enter']>>;
export type TestWorker = Awaited<ReturnType<typeof startTestWorker>>;

/** Creates the dependencies of the worker with real PostgreSQL and Redis. They are closed when the test file ends. */
export async function startTestWorker({
  leaseMs = 60_000,
  media = new MediaNodes([]),
  turnServers = [],
}: { leaseMs?: number; media?: MediaNodes; turnServers?: TurnServer[] } = {}) {
  const [{ url }, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  const database = new Database({ url, poolMax: 25, deadlines: PATIENT_DEADLINES });
  const producer = new JobProducer(redis.url, { onLost: () => undefined, onReady: () => undefined });
  await eventually(() => producer.health.check().then(() => true));
  stopAtEnd(() => Promise.all([producer.close(), database.close()]));

  const lines: LogLine[] = [];
  const stream = new PassThrough();
  // A chunk may hold several lines.
  stream.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().trimEnd().split('\n')) lines.push(JSON.parse(line) as LogLine);
  });
  const logger = createLogger({ LOG_LEVEL: 'debug', LOG_FORMAT: 'json' }, 'cleanup-worker', stream);
  const clock = testClock(NOON);
  const metrics = createMetrics({ app: 'cleanup-worker' });
  const deps: Deps = {
    database,
    producer,
    media,
    logger,
    clock,
    leaseMs,
    graceMs: 15_000,
    rosterFullMax: 100,
    relays: createRelays(turnServers, relayMetrics(metrics)),
    metrics: cleanupMetrics(metrics),
    random: Math.random,
  };
  const tenant = await createTestTenant(database);

  const worker = {
    deps,
    clock,
    databaseUrl: url,
    redis,
    tenant,
    /** All log lines so far. */
    lines,
    /** The metrics in the text format of a scrape. */
    metrics: () => metrics.text(),
    async newRoom(status: RoomStatus = 'active', emptyTimeoutSeconds: number | null = null) {
      const emptySince = status === 'created' ? new Date() : null;
      const data = roomRow(tenant, { status, createdAt: NOON, startedAt: NOON, emptySince, emptyTimeoutSeconds });
      return (await database.prisma.room.create({ data })).id;
    },
    async newParticipant(
      roomId: string,
      { connectedAt, leftAt, tokenExpiresAt, inSession = false }: TestParticipant = {},
    ) {
      const { id } = await database.prisma.participant.create({
        data: participantRow(tenant, roomId, {
          createdAt: before(60),
          tokenExpiresAt: tokenExpiresAt ?? after(600),
          connectedAt: connectedAt ?? null,
          leftAt: leftAt ?? null,
        }),
      });
      if (inSession) {
        const session = sessionRow(tenant, { roomId, participantId: id }, { startedAt: connectedAt ?? before(30) });
        await database.prisma.participantSession.create({ data: session });
      }
      return id;
    },
    /** Joins like a live signaling instance does, and publishes an audio track. */
    async enter(
      roomId: string,
      { instanceId = 'instance', mediaNodeId }: { instanceId?: string; mediaNodeId?: string } = {},
    ) {
      const { participantId, tokenId } = await inviteTestParticipant(database.sql, tenant, roomId, NOON);
      await beat(database.sql, instanceId);
      const joined = await joinOne(
        database,
        {
          tenant,
          roomId,
          participantId,
          tokenId,
          permissions: ['room:join', 'audio:publish'],
          resumeSecretHash: new Uint8Array(32),
          instanceId,
          mediaNodeId: mediaNodeId ?? null,
        },
        clock.now(),
      );
      if (joined.outcome !== 'joined') throw new Error(joined.outcome);
      const held = { sessionId: joined.sessionId, connection: joined.connection };
      const feedId = `${joined.sessionId}-1`;
      const track = { trackId: 'a', kind: 'audio', source: 'microphone', muted: false, feedId, mid: '0' } as const;
      await publishTracks(database, held, [track], clock.now());
      return { participantId, sessionId: joined.sessionId, held, feedId };
    },
    /** The event types of a room in sequence order, with the reason after each `participant.left`. */
    async events(roomId: string) {
      const rows = await database.prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } });
      return rows.map(({ type, body }) => {
        const { reason } = (JSON.parse(body) as { data: { reason?: string } }).data;
        return reason === undefined ? type : `${type} ${reason}`;
      });
    },
    async endRoom(roomId: string): Promise<AcceptedOperation> {
      const accepted = await acceptRoomEnd(database, tenant, roomId, clock.now());
      if (accepted === null) throw new Error(`no room ${roomId}`);
      return accepted;
    },
    async removeParticipant(roomId: string, participantId: string) {
      const accepted = await acceptParticipantRemoval(database, tenant, roomId, participantId, clock.now());
      if (accepted === null) throw new Error(`no participant ${participantId}`);
      return accepted;
    },
    async moveParticipant(roomId: string, participantId: string, to: string) {
      const input = { roomId: to, permissions: null };
      const accepted = await acceptParticipantMove(database, tenant, roomId, participantId, input, clock.now());
      if ('refused' in accepted) throw new Error(accepted.refused);
      return accepted;
    },
    /** Works once on an operation that is accepted. Returns its id. */
    async workOn(accepted: Promise<AcceptedOperation>) {
      const { id } = (await accepted).operation;
      await workOnOperation(deps, id);
      return id;
    },
    /** Creates a room and accepts its end. Returns the id of the operation. */
    async newOperation(): Promise<string> {
      return (await worker.endRoom(await worker.newRoom())).operation.id;
    },
    /** The whole row, including the lease. */
    row: (id: string) => database.prisma.runtimeOperation.findUniqueOrThrow({ where: { id } }),
    /** Runs SQL that simulates the passing of time, for example an expired lease. */
    sql: (statement: string) => execute(database, statement),
  };
  return worker;
}

export function before(seconds: number): Date {
  return new Date(NOON.getTime() - seconds * 1000);
}

export function after(seconds: number): Date {
  return new Date(NOON.getTime() + seconds * 1000);
}

/** Works on an operation as this app does. */
export const workOnOperation = (deps: Deps, operationId: string, kinds: Kinds<Deps> = KINDS): Promise<number | null> =>
  workOnKind(deps, operationId, kinds);

export const KIND_NAMES = Object.keys(KINDS) as OperationKind[];

/** A scan of this app that is due at once. */
export const scanOf = (deps: Deps, intervalMs: number, work: (operationId: string) => Promise<unknown>): Scan =>
  new Scan(deps, KIND_NAMES, intervalMs, work);

/** The kinds with other steps. */
export const withSteps = (...steps: CleanUpStep[]) => ({
  'room.end': { ...KINDS['room.end'], steps },
  'participant.remove': { ...KINDS['participant.remove'], steps },
  'participant.move': { ...KINDS['participant.move'], steps },
});
