import { newId, open, parseMasterKeys, seal } from '@callplane/core';
import {
  acceptRoomEnd,
  claimOperation,
  Database,
  ensureSigningKey,
  loadSigningKeys,
  settleOperation,
  writeEvents,
} from '@callplane/db';
import { JobWorkers, type OperationJob, type TurnJob } from '@callplane/queue';
import {
  createTestDatabase,
  createTestTenant,
  eventually,
  insertTestEndpoint,
  roomRow,
  startTestRedis,
  TEST_ENCRYPTION_KEYS,
  type TestDatabase,
  type TestServer,
  type TestTenant,
} from '@callplane/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { commandsWith } from './cli.testkit.js';

/** The commands that operators use during an incident, on rows as the API and the workers write them. */

let target: TestDatabase;
let redis: TestServer;
let database: Database;
let tenant: TestTenant;
let closers: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  [target, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  database = new Database({ url: target.url, poolMax: 4 });
});
beforeEach(async () => {
  tenant = await createTestTenant(database);
});
afterEach(async () => {
  await Promise.all(closers.map((close) => close()));
  closers = [];
});
afterAll(() => database.close());

const { rtc, rtcWith, json, expectFailure } = commandsWith(() => ({
  DATABASE_URL: target.url,
  REDIS_URL: redis.url,
  ENCRYPTION_KEYS: TEST_ENCRYPTION_KEYS,
}));

describe('rtc operations', () => {
  test('retries a failed operation in a new run, and wakes its worker', async () => {
    const { roomId, operationId } = await failedRoomEnd();
    expect((await json('operations', 'list', '--status', 'failed', '--env', tenant.environmentId)).data).toEqual([
      expect.objectContaining({ id: operationId, kind: 'room.end', roomId, run: 1, held: false, attempts: 1 }),
    ]);
    // A line break in a cell does not begin a row.
    expect((await rtc('operations', 'list', '--env', tenant.environmentId)).stdout).toContain('"end\\u000asessions"');
    const woken = await wakeUpsOf('room-end');
    expect(await json('operations', 'retry', operationId)).toEqual({ id: operationId, run: 2, workersNotified: true });
    await eventually(() => woken.includes(operationId));
    const { stdout } = await rtc('operations', 'list', '--env', tenant.environmentId);
    expect(stdout).toMatch(new RegExp(`^${operationId} +room.end +pending +1 +due \\S+Z +${roomId}`, 'm'));
  });

  test('retries a pending operation at once, and refuses a leased or completed one', async () => {
    const { operationId } = await pendingRoomEnd();
    await database.prisma.runtimeOperation.update({
      where: { id: operationId },
      data: { dueAt: new Date(Date.now() + 3_600_000) },
    });
    const woken = await wakeUpsOf('room-end');
    await json('operations', 'retry', operationId);
    await eventually(() => woken.includes(operationId));
    const claim = await claimOperation(database.sql, operationId, crypto.randomUUID(), 60_000);
    expect(claim).not.toBeNull();
    await expectFailure(1, ['operations', 'retry', operationId], 'is held by a worker');
    await database.prisma.runtimeOperation.update({
      where: { id: operationId },
      data: { status: 'completed', completedAt: new Date(), leaseToken: null, leaseExpiresAt: null },
    });
    await expectFailure(1, ['operations', 'retry', operationId], 'is already completed');
    await expectFailure(2, ['operations', 'retry', 'op_x'], 'rtc operations list');
  });
});

describe('rtc rooms', () => {
  test('lists rooms, and ends a room as the API does', async () => {
    const roomId = await room();
    expect((await json('rooms', 'list', '--env', tenant.environmentId)).data).toEqual([
      expect.objectContaining({ id: roomId, status: 'created', participants: 0, maxParticipants: 100 }),
    ]);
    const woken = await wakeUpsOf('room-end');
    const ended = await json('rooms', 'end', roomId);
    expect(ended).toMatchObject({ roomId, status: 'pending' });
    await eventually(() => woken.includes(ended.operationId));
    expect((await json('rooms', 'end', roomId)).operationId).toBe(ended.operationId);
    await expectFailure(2, ['rooms', 'end', 'room_x'], 'rtc rooms list');
  });
});

describe('rtc webhooks and rtc deliveries', () => {
  test('list a delivery, show it with its attempts, and replay it', async () => {
    const { endpointId, deliveryId } = await failedDelivery();
    const listed = await json('deliveries', 'list', '--endpoint', endpointId, '--status', 'failed');
    expect(listed.data).toEqual([expect.objectContaining({ id: deliveryId, failureReason: 'rejected' })]);
    expect((await rtc('deliveries', 'list', '--endpoint', endpointId)).stdout).toContain(' HTTP 404 ');
    expect(await json('deliveries', 'list', '--endpoint', endpointId, '--room', 'room_0')).toEqual({ data: [] });
    expect(await json('deliveries', 'show', deliveryId)).toMatchObject({
      id: deliveryId,
      url: 'https://example.com/hook',
      recentAttempts: [{ outcome: 'response', statusCode: 404, responseBody: 'no such page\u0007' }],
    });
    const { stdout } = await rtc('deliveries', 'show', deliveryId);
    expect(stdout).toMatch(/^status +failed: rejected$/m);
    expect(stdout).toMatch(/^0\.1 +\S+Z +response +HTTP 404 +12 ms +192\.0\.2\.1 +"no such page\\u0007"$/m);
    // Why it failed, where its time went, the request and the answer.
    expect(stdout).toMatch(/^why +HTTP 404: the receiver has no POST route/m);
    expect(stdout).toMatch(/^ {2}connect +4 ms {2,}#{13}\n {2}first byte +2 ms {15}#{7}\n {2}body +6 ms {22}#{20}$/m);
    expect(stdout).toMatch(/^ {2}x-service-signature: t=1795000000,v1=0123abcd…$/m);
    expect(stdout).toMatch(/^ {2}server: evil\\u001b\[2J$/m);

    await database.prisma.webhookEndpoint.update({ where: { id: endpointId }, data: { slotMs: 64 } });
    const woken = await wakeUpsOf('webhook-delivery');
    expect(await json('deliveries', 'replay', deliveryId)).toEqual({
      id: deliveryId,
      replayCount: 1,
      attempts: 0,
      workersNotified: true,
    });
    await eventually(() => woken.includes(endpointId));
    await expectFailure(1, ['deliveries', 'replay', deliveryId], 'it is not finished');
    await expectFailure(2, ['deliveries', 'show', 'dlv_x'], 'rtc deliveries list');
  });

  test('disable an endpoint with a reason, send webhook.disabled to the other endpoints, and enable it again', async () => {
    const endpointId = await endpoint();
    const otherId = await endpoint();
    expect(await json('webhooks', 'disable', endpointId, '--reason', ' Floods us. ')).toMatchObject({
      id: endpointId,
      enabled: false,
      disabledReason: 'Floods us.',
    });
    await json('webhooks', 'disable', endpointId);
    const deliveries = await database.prisma.webhookDelivery.findMany({ where: { eventType: 'webhook.disabled' } });
    expect(deliveries.map((delivery) => delivery.endpointId)).toEqual([otherId]);
    const listed = (await json('webhooks', 'list', '--env', tenant.environmentId)).data;
    expect(listed).toEqual([
      expect.objectContaining({ id: otherId, enabled: true, open: 1, oldestDueAt: expect.any(String) }),
      expect.objectContaining({ id: endpointId, enabled: false, open: 0, oldestDueAt: null }),
    ]);
    expect(await json('webhooks', 'enable', endpointId)).toMatchObject({ enabled: true, disabledReason: null });
    const failures = { failingSince: new Date(Date.now() - 16 * 60_000), lastFailedAt: new Date() };
    await database.prisma.webhookEndpoint.update({ where: { id: endpointId }, data: failures });
    const { stdout } = await rtc('webhooks', 'list', '--env', tenant.environmentId);
    expect(stdout).toMatch(new RegExp(`^${endpointId} +failing `, 'm'));
    expect(stdout).toMatch(new RegExp(`^${otherId} +enabled `, 'm'));
    await expectFailure(2, ['webhooks', 'enable', 'whep_x'], 'rtc webhooks list');
    await expectFailure(2, ['webhooks', 'disable', endpointId, '--reason', ' '], '1 to 255 characters');
  });

  test('give an endpoint a new secret that signs a day later, and activate or cancel it', async () => {
    const endpointId = await endpoint();
    const rotated = await json('webhooks', 'rotate-secret', endpointId);
    expect(rotated).toMatchObject({ signingKeyVersion: 1, nextSigningKeyVersion: 2 });
    expect(rotated.signingSecret).toMatch(/^whsec_/);
    const waitsMs = Date.parse(rotated.nextActivatesAt) - Date.parse(rotated.updatedAt);
    expect(Math.abs(waitsMs - 86_400_000)).toBeLessThan(60_000);
    await expectFailure(1, ['webhooks', 'rotate-secret', endpointId, '--activate-in', '0'], 'cancel-rotation');
    expect(await json('webhooks', 'cancel-rotation', endpointId)).toMatchObject({
      signingKeyVersion: 1,
      nextSigningKeyVersion: null,
    });
    await expectFailure(1, ['webhooks', 'activate-secret', endpointId], 'No new secret');
    await json('webhooks', 'rotate-secret', endpointId, '--activate-in', '7d');
    expect(await json('webhooks', 'activate-secret', endpointId)).toMatchObject({ signingKeyVersion: 3 });
    const atOnce = await json('webhooks', 'rotate-secret', endpointId, '--activate-in', '0');
    expect(atOnce).toMatchObject({ signingKeyVersion: 4, nextSigningKeyVersion: null });
    await expectFailure(2, ['webhooks', 'rotate-secret', endpointId, '--activate-in', '8d'], 'at most 7d');
    await expectFailure(2, ['webhooks', 'rotate-secret', 'whep_x'], 'rtc webhooks list');
  });
});

describe('rtc queues', () => {
  test('shows due rows, their age and the Redis counts, and works without Redis', async () => {
    await pendingRoomEnd();
    await wakeUpsOf('room-end');
    const { data } = await json('queues');
    expect(data.map(({ queue }: { queue: string }) => queue)).toEqual([
      'room-end',
      'participant-remove',
      'participant-move',
      'recording-process',
      'recording-delete',
      'webhook-delivery',
    ]);
    expect(data[0]).toMatchObject({ due: expect.any(Number), redis: { workers: 1 } });
    expect(data[0].due).toBeGreaterThan(0);
    expect(data[0].oldestDueMs).toBeGreaterThanOrEqual(0);
    const without = await rtcWith({ REDIS_URL: '' }, 'queues');
    expect(without).toMatchObject({ code: 0, stdout: expect.stringMatching(/^room-end .* unknown$/m) });
  });
});

describe('rtc encryption', () => {
  test('reseals every secret with the first key, so that the old key can be removed', async () => {
    const [old] = TEST_ENCRYPTION_KEYS.split(',');
    const next = `k2:${Buffer.alloc(32, 9).toString('base64')}`;
    await ensureSigningKey(database, parseMasterKeys([old!]), new Date());
    const endpointId = await endpoint();
    const context = `webhook-secret:${endpointId}:1`;
    await database.prisma.webhookSecret.deleteMany({ where: { endpointId: { not: endpointId } } });
    const sealed = seal(parseMasterKeys([old!]), 'whsec_word', context);
    await database.prisma.webhookSecret.updateMany({ where: { endpointId }, data: { secretSealed: sealed } });
    const header = `webhook-header:${endpointId}:authorization`;
    const headers = { authorization: seal(parseMasterKeys([old!]), 'Bearer 1', header) };
    await database.prisma.webhookEndpoint.update({ where: { id: endpointId }, data: { headers } });

    await expectFailure(1, ['encryption', 'reseal'], 'is not configured', { ENCRYPTION_KEYS: next });
    const both = { ENCRYPTION_KEYS: `${next},${old!}` };
    const first = JSON.parse((await rtcWith(both, 'encryption', 'reseal', '--json')).stdout);
    expect(first).toEqual({ sealedWith: 'k2', webhookSecrets: 2, signingKeys: 1, answersLeft: 0 });
    const again = JSON.parse((await rtcWith(both, 'encryption', 'reseal', '--json')).stdout);
    expect(again).toMatchObject({ webhookSecrets: 0, signingKeys: 0 });
    // Every secret opens without the old key.
    const alone = parseMasterKeys([next]);
    const { secretSealed } = await database.prisma.webhookSecret.findFirstOrThrow({ where: { endpointId } });
    expect(open(alone, secretSealed, context)).toBe('whsec_word');
    const resealed = await database.prisma.webhookEndpoint.findUniqueOrThrow({ where: { id: endpointId } });
    expect(open(alone, (resealed.headers as typeof headers).authorization, header)).toBe('Bearer 1');
    expect((await loadSigningKeys(database, alone, new Date())).signer.kid).toEqual(expect.any(String));
  });
});

describe('the --limit option', () => {
  test('accepts whole numbers from 1 to 1000', async () => {
    for (const limit of ['0', '1001', 'x', '1.5']) {
      await expectFailure(2, ['rooms', 'list', '--limit', limit], 'from 1 to 1000');
    }
    await room();
    await room();
    expect((await json('rooms', 'list', '--limit', '1')).data).toHaveLength(1);
  });
});

async function room(): Promise<string> {
  return (await database.prisma.room.create({ data: roomRow(tenant, { name: 'Night' }) })).id;
}

async function pendingRoomEnd() {
  const roomId = await room();
  const accepted = await acceptRoomEnd(database, tenant, roomId, new Date());
  return { roomId, operationId: accepted!.operation.id };
}

async function failedRoomEnd() {
  const { roomId, operationId } = await pendingRoomEnd();
  const claim = await claimOperation(database.sql, operationId, crypto.randomUUID(), 60_000);
  const error = { code: 'STEP_FAILED', message: 'The step "end\nsessions" failed.' } as const;
  await settleOperation(database.sql, claim!, { status: 'failed', error });
  return { roomId, operationId };
}

const endpoint = () => insertTestEndpoint(database, tenant, { url: 'https://example.com/hook' });

async function deliveryTo(endpointId: string): Promise<string> {
  const event = { type: 'webhook.test' as const, tenant, roomId: null, participantId: null, data: {} };
  const { deliveries } = await database.transaction((tx) =>
    writeEvents(tx, [{ ...event, createdAt: new Date() }], { only: endpointId }),
  );
  return deliveries[0]!.id;
}

async function failedDelivery() {
  const endpointId = await endpoint();
  const deliveryId = await deliveryTo(endpointId);
  await database.prisma.webhookDelivery.update({
    where: { id: deliveryId },
    data: { status: 'failed', failureReason: 'rejected', completedAt: new Date(), runAttempts: 1 },
  });
  await database.prisma.webhookAttempt.create({
    data: {
      id: newId('attempt'),
      deliveryId,
      endpointId,
      replayCount: 0,
      attempt: 1,
      url: 'https://example.com/hook',
      signingKeyVersion: 1,
      startedAt: new Date(),
      durationMs: 12,
      outcome: 'response',
      statusCode: 404,
      address: '192.0.2.1',
      responseBody: 'no such page\u0007',
      responseTruncated: false,
      connectMs: 4,
      firstByteMs: 2,
      exchange: {
        request: { signedAt: 1_795_000_000, signature: '0123abcd' },
        responseHeaders: { server: 'evil\u001b[2J' },
      },
    },
  });
  return { endpointId, deliveryId };
}

/** Starts a worker, and returns the ids of the operations or endpoints that the jobs of this queue wake from now on. */
async function wakeUpsOf(queue: 'room-end' | 'webhook-delivery'): Promise<string[]> {
  const woken: string[] = [];
  const ignored = () => undefined;
  const worker = new JobWorkers<OperationJob | TurnJob>({
    redisUrl: redis.url,
    queues: { [queue]: 1 },
    work: (job) => {
      woken.push('operationId' in job ? job.operationId : job.endpointId);
      return Promise.resolve(null);
    },
    events: { onLost: ignored, onReady: ignored, onFailed: ignored },
  });
  closers.push(() => worker.close());
  // A worker is counted only once it has named its Redis connection.
  await eventually(async () => {
    const queues = (await json('queues')).data as { queue: string; redis: { workers: number } | null }[];
    return queues.some((row) => row.queue === queue && row.redis?.workers === 1);
  });
  return woken;
}
