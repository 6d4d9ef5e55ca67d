import { randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import {
  createAddressFilter,
  createPortFilter,
  newId,
  parseMasterKeys,
  seal,
  slotMsAfter,
  TURN_DELIVERIES_MAX,
  type EventType,
} from '@callplane/core';
import {
  claimDeliveries,
  Database,
  writeEvents,
  type ClaimedDelivery,
  type EndedAttempt,
  type WrittenDelivery,
} from '@callplane/db';
import { JobProducer } from '@callplane/queue';
import { createLogger, createMetrics } from '@callplane/runtime';
import {
  execute,
  createTestDatabase,
  createTestTenant,
  PATIENT_DEADLINES,
  roomRow,
  startTestRedis,
  stopAtEnd,
  TEST_ENCRYPTION_KEYS,
  testClock,
  type LogLine,
} from '@callplane/testing';
import { attemptDelivery, OpenedSecrets } from './deliveries/attempt.js';
import { Settling } from './deliveries/settling.js';
import type { Deps } from './deps.js';
import { systemResolver } from './destinations/resolver.js';
import { webhookMetrics } from './metrics.js';
import { PinnedAgents } from './sending/pinned-agents.js';

export const NOON = new Date('2030-01-01T12:00:00.000Z');
export const TEST_SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

/** A claim that has ended with this outcome, to be settled. */
export function endedAttempt(
  claim: ClaimedDelivery,
  outcome: 'success' | 'connect' | 'response',
  after: EndedAttempt['after'] = { status: 'succeeded' },
): EndedAttempt {
  const timings = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null };
  const answer = { errorCode: null, statusCode: null, address: null, responseBody: null, exchange: null };
  const attempt = { ...answer, durationMs: 1, outcome, timings, responseTruncated: false };
  return { claim, attempt, after, slotMs: 64 };
}

/** @param context the owner of the secret. */
export function sealTestSecret(secret: string, context: string): string {
  return seal(parseMasterKeys([TEST_ENCRYPTION_KEYS]), secret, context);
}

export type TestWorker = Awaited<ReturnType<typeof startTestWorker>>;

/** Creates the dependencies of the worker with real PostgreSQL and Redis. They are closed when the test file ends. */
export async function startTestWorker(more: Partial<Deps> = {}) {
  const [{ url }, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  const database = new Database({ url, poolMax: 15, indexesOnly: true, deadlines: PATIENT_DEADLINES });
  const producer = new JobProducer(redis.url, { onLost: () => undefined, onReady: () => undefined });
  await new Promise((resolve) => producer.redis.once('ready', resolve));
  const agents = new PinnedAgents();
  stopAtEnd(async () => {
    await agents.close();
    await Promise.all([producer.close(), database.close()]);
  });

  const lines: LogLine[] = [];
  const stream = new PassThrough();
  stream.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().split('\n')) if (line !== '') lines.push(JSON.parse(line) as LogLine);
  });
  const logger = createLogger({ LOG_LEVEL: 'debug', LOG_FORMAT: 'json' }, 'webhook-worker', stream);
  const metrics = createMetrics({ app: 'webhook-worker' });
  const clock = testClock(NOON);
  const masterKeys = parseMasterKeys([TEST_ENCRYPTION_KEYS]);
  const deps: Deps = {
    database,
    settling: new Settling(database.sql, logger),
    producer,
    logger,
    metrics: webhookMetrics(metrics),
    clock,
    random: () => 0,
    secrets: new OpenedSecrets(masterKeys),
    resolver: systemResolver(),
    agents,
    isAllowedAddress: createAddressFilter(['127.0.0.0/8', '::1/128']),
    networkOf: (address) => (address.startsWith('127.') ? 'loopback' : null),
    // Allows port 1, on which no process listens.
    isAllowedPort: createPortFilter(['1-65535']),
    allowHttp: true,
    leaseMs: 60_000,
    deliveryDeadlineMs: 10_000,
    dnsDeadlineMs: 5000,
    ...more,
  };
  const tenant = await createTestTenant(database);
  const { prisma } = database;

  const worker = {
    deps,
    clock,
    databaseUrl: url,
    redis,
    tenant,
    lines,
    /** The metrics in the text format of a scrape. */
    metrics: () => metrics.text(),
    async newEndpoint(
      endpointUrl: string,
      {
        environmentId = tenant.environmentId,
        slotMs,
        enabled = true,
        failingSince,
        lastFailedAt,
      }: { environmentId?: string; slotMs?: number; enabled?: boolean; failingSince?: Date; lastFailedAt?: Date } = {},
    ) {
      const id = newId('webhookEndpoint');
      await prisma.webhookEndpoint.create({
        data: {
          id,
          environmentId,
          url: endpointUrl,
          events: ['*'],
          enabled,
          signingKeyVersion: 1,
          slotMs: slotMs ?? null,
          failingSince: failingSince ?? null,
          lastFailedAt: lastFailedAt ?? null,
          createdAt: NOON,
          updatedAt: NOON,
          secrets: {
            create: {
              version: 1,
              secretSealed: sealTestSecret(TEST_SECRET, `webhook-secret:${id}:1`),
              createdAt: NOON,
            },
          },
        },
      });
      return id;
    },
    /** Writes events for this endpoint only. */
    async emit(endpointId: string, count = 1, type: EventType = 'webhook.test'): Promise<WrittenDelivery[]> {
      const data = { greeting: 'Grüße' };
      const { environmentId } = await worker.endpoint(endpointId);
      const owner = { ...tenant, environmentId };
      const event = { type, tenant: owner, roomId: null, participantId: null, createdAt: clock.now(), data };
      const events = Array.from({ length: count }, () => event);
      const written = await database.transaction((tx) => writeEvents(tx, events, { only: endpointId }));
      return written.deliveries;
    },
    /**
     * Writes events of one room for this endpoint only; their `data.room` is its id. Returns the ids of the deliveries in
     * the order of the events.
     */
    async emitToRoom(endpointId: string, roomId: string, count: number) {
      const createdAt = clock.now();
      const create = roomRow(tenant, { id: roomId, createdAt });
      await prisma.room.upsert({ where: { id: roomId }, create, update: {} });
      const event = {
        type: 'webhook.test' as const,
        tenant,
        roomId,
        participantId: null,
        createdAt,
        data: { room: roomId },
      };
      const events = Array.from({ length: count }, () => event);
      const { eventIds } = await database.transaction((tx) => writeEvents(tx, events, { only: endpointId }));
      const deliveries = await prisma.webhookDelivery.findMany({
        where: { eventId: { in: eventIds } },
        orderBy: { sequence: 'asc' },
      });
      return deliveries.map(({ id }) => id);
    },
    /** Creates an endpoint for the URL and one delivery to it. Returns the id of the delivery. */
    async newDelivery(endpointUrl: string): Promise<string> {
      const [delivery] = await worker.emit(await worker.newEndpoint(endpointUrl));
      return delivery!.id;
    },
    row: (id: string) => prisma.webhookDelivery.findUniqueOrThrow({ where: { id } }),
    endpoint: (id: string) => prisma.webhookEndpoint.findUniqueOrThrow({ where: { id } }),
    attempts: (deliveryId: string) => prisma.webhookAttempt.findMany({ where: { deliveryId }, orderBy: { id: 'asc' } }),
    /** Claims due deliveries of the endpoint, the oldest first. */
    async claim(endpointId: string, count = 1, leaseMs = deps.leaseMs) {
      const rows: ClaimedDelivery[] = [];
      for (;;) {
        const request = {
          endpointId,
          lane: 'slow' as const,
          token: randomUUID(),
          leaseMs,
          deliveriesMax: TURN_DELIVERIES_MAX,
          afterRoomId: '',
        };
        const { claimed } = await claimDeliveries(deps.database, request);
        rows.push(...claimed);
        if (claimed.length === 0 || rows.length >= count) return rows;
      }
    },
    /** Makes one attempt at a due delivery of the same endpoint, like a slot does. False if nothing was attempted. */
    async attempt(deliveryId: string, own = deps): Promise<boolean> {
      const [claim, ...others] = await worker.claim((await worker.row(deliveryId)).endpointId);
      await deps.settling.release(others);
      if (claim === undefined) return false;
      const attempted = await attemptDelivery(own, claim);
      if (attempted !== null) {
        const { attempt, hung } = attempted;
        await attempted.settle(slotMsAfter(null, { durationMs: attempt.durationMs, hung }));
      }
      return attempted !== null;
    },
    sql: (statement: string) => execute(database, statement),
  };
  return worker;
}
