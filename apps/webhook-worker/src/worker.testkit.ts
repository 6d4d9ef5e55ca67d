import { PassThrough } from 'node:stream';
import { createAddressJudge, newId, parseMasterKeys, seal, type EventType } from '@callplane/core';
import { Database, glanceAtDeliveries, writeEvents, type WakeableDelivery } from '@callplane/db';
import { JobProducer } from '@callplane/queue';
import { createLogger, createMetrics } from '@callplane/runtime';
import {
  createTestDatabase,
  createTestTenant,
  startTestRedis,
  stopAtEnd,
  TEST_ENCRYPTION_KEYS,
  testClock,
  type LogLine,
  type TestClock,
  type TestServer,
  type TestTenant,
} from '@callplane/testing';
import { Claiming } from './deliveries/claiming.js';
import { Dispatcher } from './deliveries/dispatcher.js';
import { OpenedSecrets } from './deliveries/opened-secrets.js';
import { Senders } from './deliveries/senders.js';
import { Settling } from './deliveries/settling.js';
import { attemptDelivery } from './deliveries/work-on-delivery.js';
import type { Deps } from './deps.js';
import { systemResolver } from './destinations/resolver.js';
import { webhookMetrics } from './metrics.js';
import { PinnedAgents } from './sending/pinned-agents.js';

export const NOON = new Date('2030-01-01T12:00:00.000Z');
export const TEST_SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

export interface TestWorker {
  deps: Deps;
  clock: TestClock;
  databaseUrl: string;
  redis: TestServer;
  tenant: TestTenant;
  lines: LogLine[];
  /** As a scrape would show them. */
  metrics(): Promise<string>;
  newEndpoint(
    url: string,
    more?: { proven?: boolean; enabled?: boolean; failingSince?: Date; lastFailedAt?: Date },
  ): Promise<string>;
  /** Events for this endpoint alone. */
  emit(endpointId: string, count?: number, type?: EventType): Promise<WakeableDelivery[]>;
  /** An endpoint for the URL and one delivery to it. */
  newDelivery(url: string): Promise<string>;
  row(deliveryId: string): ReturnType<Database['prisma']['webhookDelivery']['findUniqueOrThrow']>;
  endpoint(endpointId: string): ReturnType<Database['prisma']['webhookEndpoint']['findUniqueOrThrow']>;
  attempts(deliveryId: string): ReturnType<Database['prisma']['webhookAttempt']['findMany']>;
  newDispatcher(): Dispatcher;
  sql(statement: string): Promise<unknown>;
}

/** What the worker's functions are given, with real PostgreSQL and Redis behind it. Closed when the test file ends. */
export async function startTestWorker(more: Partial<Deps> = {}): Promise<TestWorker> {
  const [{ url }, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  const database = new Database({ url, poolMax: 15, indexesOnly: true });
  const claims = new Database({ url, poolMax: 5, asynchronousCommit: true, indexesOnly: true });
  const producer = new JobProducer(redis.url, { onLost: () => undefined, onReady: () => undefined });
  await new Promise((resolve) => producer.redis.once('ready', resolve));
  const agents = new PinnedAgents();
  stopAtEnd(async () => {
    agents.close();
    await Promise.all([producer.close(), database.close(), claims.close()]);
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
    claims,
    claiming: new Claiming(claims.hot, 60_000),
    settling: new Settling(database.hot, logger),
    senders: new Senders(4),
    producer,
    logger,
    metrics: webhookMetrics(metrics),
    clock,
    random: () => 0,
    secrets: new OpenedSecrets(masterKeys),
    resolver: systemResolver(),
    agents,
    isAllowedAddress: createAddressJudge(['127.0.0.0/8', '::1/128']),
    allowHttp: true,
    leaseMs: 60_000,
    deliveryDeadlineMs: 10_000,
    dnsDeadlineMs: 5000,
    ...more,
  };
  const tenant = await createTestTenant(database);
  const { prisma } = database;

  const worker: TestWorker = {
    deps,
    clock,
    databaseUrl: url,
    redis,
    tenant,
    lines,
    metrics: () => metrics.text(),
    async newEndpoint(endpointUrl, { proven = false, enabled = true, failingSince, lastFailedAt } = {}) {
      const id = newId('webhookEndpoint');
      await prisma.webhookEndpoint.create({
        data: {
          id,
          environmentId: tenant.environmentId,
          url: endpointUrl,
          events: ['*'],
          enabled,
          signingKeyVersion: 1,
          proven,
          failingSince: failingSince ?? null,
          lastFailedAt: lastFailedAt ?? null,
          createdAt: NOON,
          updatedAt: NOON,
          secrets: {
            create: {
              version: 1,
              secretSealed: seal(masterKeys, TEST_SECRET, `webhook-secret:${id}:1`),
              createdAt: NOON,
            },
          },
        },
      });
      return id;
    },
    async emit(endpointId, count = 1, type = 'webhook.test') {
      const events = Array.from({ length: count }, () => ({ type, data: { greeting: 'Grüße' } }));
      const written = await database.transaction((tx) =>
        writeEvents(tx, tenant, null, events, clock.now(), { only: endpointId }),
      );
      return written.deliveries;
    },
    async newDelivery(endpointUrl) {
      const [delivery] = await worker.emit(await worker.newEndpoint(endpointUrl));
      return delivery!.id;
    },
    row: (id) => prisma.webhookDelivery.findUniqueOrThrow({ where: { id } }),
    endpoint: (id) => prisma.webhookEndpoint.findUniqueOrThrow({ where: { id } }),
    attempts: (deliveryId) => prisma.webhookAttempt.findMany({ where: { deliveryId }, orderBy: { id: 'asc' } }),
    newDispatcher: () =>
      new Dispatcher({
        total: 8,
        suspectsMax: 2,
        random: Math.random,
        glance: (ids) => glanceAtDeliveries(claims.hot, ids),
        work: (id) => attemptDelivery(deps, id),
      }),
    sql: (statement) => prisma.$executeRawUnsafe(statement),
  };
  return worker;
}
