import { createHmac, randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { BACKOFF_SECONDS } from '@callplane/core';
import { claimDelivery, settleDeliveries } from '@callplane/db';
import { eventually } from '@callplane/testing';
import { startReceiver } from '../receivers.testkit.js';
import { NOON, startTestWorker, TEST_SECRET, type TestWorker } from '../worker.testkit.js';
import { Senders } from './senders.js';
import { workOnDelivery } from './work-on-delivery.js';

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});
beforeEach(() => worker.clock.set(NOON));

/** How long from now until it is due, by PostgreSQL's clock. */
async function dueInSeconds(id: string): Promise<number> {
  const [row] = await worker.deps.database.prisma.$queryRaw<{ seconds: number }[]>`
    SELECT extract(epoch FROM due_at - now())::float8 AS seconds FROM webhook_deliveries WHERE id = ${id}`;
  return row!.seconds;
}
const makeDue = (id: string) =>
  worker.sql(`UPDATE webhook_deliveries SET due_at = now() - interval '1 second' WHERE id = '${id}'`);

describe('a delivery', () => {
  test("carries the event's bytes, signed as the contract says", async () => {
    const receiver = await startReceiver((_request, response) => response.end('thanks'));
    const id = await worker.newDelivery(`${receiver.url}?a=b`);
    expect(await workOnDelivery(worker.deps, id)).toEqual({ proves: true });

    const [request] = receiver.requests;
    const row = await worker.row(id);
    const event = await worker.deps.database.prisma.event.findUniqueOrThrow({ where: { id: row.eventId } });
    expect(request!.body.toString('utf8')).toBe(event.body);
    expect([request!.method, request!.path]).toEqual(['POST', '/hook?a=b']);
    expect(request!.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(event.body)),
      'user-agent': 'Callplane-Webhooks/1',
      'x-service-delivery-id': id,
      'x-service-replay-count': '0',
      'x-service-signing-key-version': '1',
    });
    const seconds = NOON.getTime() / 1000;
    const mac = createHmac('sha256', Buffer.from(TEST_SECRET, 'utf8'))
      .update(Buffer.concat([Buffer.from(`${seconds}.${id}.0.`, 'ascii'), request!.body]))
      .digest('hex');
    expect(request!.headers['x-service-signature']).toBe(`t=${seconds},v1=${mac}`);

    expect(row).toMatchObject({ status: 'succeeded', failureReason: null, runAttempts: 1, leaseToken: null });
    expect(row.completedAt).not.toBeNull();
    expect(await worker.attempts(id)).toEqual([
      expect.objectContaining({
        attempt: 1,
        replayCount: 0,
        outcome: 'success',
        errorCode: null,
        statusCode: 200,
        address: '127.0.0.1',
        dnsMs: null,
        tlsMs: null,
        responseBody: 'thanks',
        responseTruncated: false,
        signingKeyVersion: 1,
        url: `${receiver.url}?a=b`,
      }),
    ]);
    expect(await worker.endpoint(row.endpointId)).toMatchObject({ proven: true, failingSince: null });
    expect(worker.lines.at(-1)).toMatchObject({ message: 'delivery attempt', deliveryId: id, status: 'succeeded' });
    expect(JSON.stringify(worker.lines)).not.toContain('whsec_');
  });

  test('keeps the URL and the secret of its first attempt, whatever the endpoint becomes', async () => {
    const receiver = await startReceiver((_request, response) => response.writeHead(503).end());
    const id = await worker.newDelivery(receiver.url);
    await workOnDelivery(worker.deps, id);
    const { endpointId } = await worker.row(id);
    await worker.sql(`INSERT INTO webhook_secrets SELECT endpoint_id, 2, 'unused', created_at FROM webhook_secrets
      WHERE endpoint_id = '${endpointId}'`);
    await worker.sql(`UPDATE webhook_endpoints SET url = 'http://127.0.0.1:1/', signing_key_version = 2
      WHERE id = '${endpointId}'`);
    await makeDue(id);
    await workOnDelivery(worker.deps, id);
    expect(receiver.requests.map(({ headers }) => headers['x-service-signing-key-version'])).toEqual(['1', '1']);
  });

  test("is tried eight times at the contract's delays, then failed", async () => {
    const receiver = await startReceiver((_request, response) => response.writeHead(500).end('no'));
    const id = await worker.newDelivery(receiver.url);
    for (const seconds of BACKOFF_SECONDS) {
      await workOnDelivery(worker.deps, id);
      expect(await worker.row(id)).toMatchObject({ status: 'pending', completedAt: null });
      const due = await dueInSeconds(id);
      expect(due).toBeLessThanOrEqual(seconds);
      expect(due).toBeGreaterThan(seconds - 2);
      // Not before it is due.
      expect(await workOnDelivery(worker.deps, id)).toBeNull();
      await makeDue(id);
    }
    await workOnDelivery(worker.deps, id);
    expect(await worker.row(id)).toMatchObject({
      status: 'failed',
      failureReason: 'attempts_exhausted',
      runAttempts: 8,
    });
    expect(receiver.requests).toHaveLength(8);
    expect((await worker.attempts(id)).map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    await makeDue(id);
    expect(await workOnDelivery(worker.deps, id)).toBeNull();
  });

  test('of a disabled or deleted endpoint is not attempted', async () => {
    const receiver = await startReceiver();
    for (const change of ['enabled = false', 'deleted_at = now()']) {
      const id = await worker.newDelivery(receiver.url);
      const { endpointId } = await worker.row(id);
      await worker.sql(`UPDATE webhook_endpoints SET ${change} WHERE id = '${endpointId}'`);
      expect(await workOnDelivery(worker.deps, id)).toBeNull();
      expect(await worker.row(id)).toMatchObject({ status: 'pending', runAttempts: 0 });
    }
    expect(receiver.requests).toHaveLength(0);
  });

  test('of which two workers are told is attempted once', async () => {
    const receiver = await startReceiver();
    const id = await worker.newDelivery(receiver.url);
    const results = await Promise.all(Array.from({ length: 8 }, () => workOnDelivery(worker.deps, id)));
    expect(results.filter((result) => result !== null)).toHaveLength(1);
    expect(receiver.requests).toHaveLength(1);
  });
});

describe('the lease', () => {
  test('an answer that comes after it counts while nobody has taken the row over', async () => {
    const receiver = await startReceiver((_request, response) => {
      void worker
        .sql(`UPDATE webhook_deliveries SET lease_expires_at = now() - interval '1 second' WHERE status = 'delivering'`)
        .then(() => response.end());
    });
    const id = await worker.newDelivery(receiver.url);
    await workOnDelivery(worker.deps, id);
    expect(await worker.row(id)).toMatchObject({ status: 'succeeded' });
  });

  test('who comes back after another took the row writes nothing', async () => {
    const receiver = await startReceiver((_request, response) => {
      void worker
        .sql(`UPDATE webhook_deliveries SET lease_token = '${randomUUID()}' WHERE status = 'delivering'`)
        .then(() => response.end());
    });
    const id = await worker.newDelivery(receiver.url);
    await workOnDelivery(worker.deps, id);
    expect(await worker.row(id)).toMatchObject({ status: 'delivering', runAttempts: 1 });
    expect(await worker.attempts(id)).toHaveLength(0);
    expect(worker.lines.at(-1)).toMatchObject({ deliveryId: id, status: 'lease_lost' });
  });

  test('claims do not wait for the disk, settles do', async () => {
    // The test server has it off for everybody, so what matters is who asked for it.
    const source = async (database: TestWorker['deps']['database']) => {
      const [row] = await database.prisma.$queryRaw<{ source: string }[]>`
        SELECT source FROM pg_settings WHERE name = 'synchronous_commit'`;
      return row!.source;
    };
    expect(await source(worker.deps.claims)).toBe('client');
    expect(await source(worker.deps.database)).not.toBe('client');
    const id = await worker.newDelivery('http://127.0.0.1:1/');
    expect(await claimDelivery(worker.deps.claims.prisma, id, randomUUID(), 60_000)).toMatchObject({
      id,
      runAttempt: 1,
    });
  });
});

describe('what is claimed ahead of its turn', () => {
  const ahead = async (senders: Senders) => {
    const receiver = await startReceiver();
    const id = await worker.newDelivery(receiver.url);
    expect(await senders.enter()).toBe(true);
    const waiting = workOnDelivery({ ...worker.deps, senders, leaseMs: 300 }, id);
    await eventually(async () => (await worker.row(id)).status === 'delivering');
    return { id, receiver, waiting };
  };

  test('is sent when its turn comes, and its attempt begins then', async () => {
    const senders = new Senders(1);
    const { id, receiver, waiting } = await ahead(senders);
    const { leaseExpiresAt } = await worker.row(id);
    expect(receiver.requests).toHaveLength(0);
    await new Promise((resolve) => setTimeout(resolve, 100));
    senders.leave();
    expect(await waiting).toEqual({ proves: true });
    const [attempt] = await worker.attempts(id);
    expect(attempt!.startedAt.getTime()).toBeGreaterThan(leaseExpiresAt!.getTime() - 60_000 + 90);
    expect(senders.inUse).toBe(0);
  });

  test.each([
    ['the worker drains', (senders: Senders) => senders.drain()],
    ['its lease is over by then', (senders: Senders) => void setTimeout(() => senders.leave(), 350)],
  ])('is given back untried when %s', async (_when, happen) => {
    const senders = new Senders(1);
    const { id, receiver, waiting } = await ahead(senders);
    happen(senders);
    expect(await waiting).toBeNull();
    expect(await worker.row(id)).toMatchObject({ status: 'pending', runAttempts: 0, leaseToken: null });
    expect(receiver.requests).toHaveLength(0);
  });
});

describe('many at once', () => {
  test('share statements, and one that is locked is waited for alone', async () => {
    const receiver = await startReceiver();
    const endpointId = await worker.newEndpoint(receiver.url);
    const ids = (await worker.emit(endpointId, 6)).map(({ id }) => id);
    const senders = new Senders(6);
    let others: Promise<unknown[]> | undefined;
    let locked: Promise<unknown> | undefined;
    await worker.deps.database.transaction(async (tx) => {
      await tx.$queryRaw`SELECT 1 FROM webhook_deliveries WHERE id = ${ids[0]} FOR UPDATE`;
      const all = ids.map((id) => workOnDelivery({ ...worker.deps, senders }, id));
      locked = all[0];
      others = Promise.all(all.slice(1));
      // Nothing waits for it.
      expect(await others).toHaveLength(5);
    });
    expect(await locked).toEqual({ proves: true });
    expect(await worker.deps.database.prisma.webhookAttempt.count({ where: { delivery: { endpointId } } })).toBe(6);
  });

  test("leave an endpoint's standing as if they had ended one after another", async () => {
    const endpointId = await worker.newEndpoint('http://127.0.0.1:1/', { failingSince: new Date(0) });
    const claims = await Promise.all(
      (await worker.emit(endpointId, 3)).map(({ id }) =>
        claimDelivery(worker.deps.claims.hot, id, randomUUID(), 60_000),
      ),
    );
    const ended = (at: number, outcome: 'success' | 'connect') => ({
      claim: claims[at]!,
      attempt: {
        ...{ outcome, durationMs: 1, errorCode: null, statusCode: null, address: null, responseBody: null },
        timings: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
        responseTruncated: false,
      },
      after: { status: 'succeeded' as const },
      proves: outcome === 'success',
    });
    const beginning = new Date();
    // Lost its lease: nothing is written of it, and the others are settled all the same.
    const stolen = { ...ended(2, 'success'), claim: { ...claims[2]!, leaseToken: randomUUID() } };
    const settled = await settleDeliveries(worker.deps.database.hot, [
      ended(0, 'success'),
      ended(1, 'connect'),
      stolen,
    ]);
    expect(settled.map(({ id }) => id).sort()).toEqual([claims[0]!.id, claims[1]!.id].sort());
    const endpoint = await worker.endpoint(endpointId);
    expect(endpoint.proven).toBe(false);
    expect(endpoint.failingSince!.getTime()).toBeGreaterThanOrEqual(beginning.getTime() - 5);
    expect(endpoint.lastFailedAt).toEqual(endpoint.failingSince);
    expect(await worker.row(claims[2]!.id)).toMatchObject({ status: 'delivering' });
  });
});

test('a secret that cannot be opened costs no attempt', async () => {
  const id = await worker.newDelivery('http://127.0.0.1:1/');
  await worker.sql(`UPDATE webhook_secrets SET secret_sealed = 's1.gone.AAAA'
    WHERE endpoint_id = (SELECT endpoint_id FROM webhook_deliveries WHERE id = '${id}')`);
  expect(await workOnDelivery(worker.deps, id)).toBeNull();
  expect(await worker.row(id)).toMatchObject({ status: 'pending', runAttempts: 0, leaseToken: null });
  expect(await dueInSeconds(id)).toBeGreaterThan(50);
});
