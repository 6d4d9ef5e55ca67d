import { createHmac, randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { BACKOFF_SECONDS } from '@callplane/core';
import { rotateWebhookSecret, takeOverLeases } from '@callplane/db';
import { eventually } from '@callplane/testing';
import { startReceiver } from '../receivers.testkit.js';
import { attemptDelivery } from './attempt.js';
import { NOON, sealTestSecret, startTestWorker, TEST_SECRET, type TestWorker } from '../worker.testkit.js';

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});
beforeEach(() => worker.clock.set(NOON));

/** Seconds until the delivery is due, by PostgreSQL's clock. */
async function dueInSeconds(id: string): Promise<number> {
  const [row] = await worker.deps.database.sql.$queryRaw<{ seconds: number }[]>`
    SELECT extract(epoch FROM due_at - now())::float8 AS seconds FROM webhook_deliveries WHERE id = ${id}`;
  return row!.seconds;
}
const signedAt = (signature: string) => Number(/^t=(\d+),/.exec(signature)?.[1]);
const makeDue = (id: string) =>
  worker.sql(`UPDATE webhook_deliveries SET due_at = now() - interval '1 second' WHERE id = '${id}'`);

describe('a delivery', () => {
  test("carries the event's bytes with the signature that the contract defines", async () => {
    const receiver = await startReceiver((_request, response) => response.end('thanks'));
    const id = await worker.newDelivery(`${receiver.url}?a=b`);
    expect(await worker.attempt(id)).toBe(true);

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
    const signature = String(request!.headers['x-service-signature']);
    const seconds = signedAt(signature);
    const mac = createHmac('sha256', Buffer.from(TEST_SECRET, 'utf8'))
      .update(Buffer.concat([Buffer.from(`${seconds}.${id}.0.`, 'ascii'), request!.body]))
      .digest('hex');
    expect(signature).toBe(`t=${seconds},v1=${mac}`);
    // PostgreSQL's time: by the clock of this worker it is noon in 2030.
    const [{ now }] = await worker.deps.database.sql.$queryRaw<[{ now: number }]>`
      SELECT extract(epoch FROM now())::float8 AS now`;
    expect(Math.abs(seconds - now)).toBeLessThan(200);

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
        exchange: { request: expect.objectContaining({ signature: expect.stringMatching(/^[0-9a-f]{8}$/) }) },
        signingKeyVersion: 1,
        url: `${receiver.url}?a=b`,
      }),
    ]);
    expect(await worker.endpoint(row.endpointId)).toMatchObject({ slotMs: expect.any(Number), failingSince: null });
    expect(worker.lines).toContainEqual(
      expect.objectContaining({ message: 'delivery attempt', deliveryId: id, status: 'succeeded' }),
    );
    expect(JSON.stringify(worker.lines)).not.toContain('whsec_');
  });

  test('carries the headers that its endpoint has at each attempt, and waits if a value cannot be opened', async () => {
    const receiver = await startReceiver((_request, response) => response.writeHead(503).end());
    const id = await worker.newDelivery(receiver.url);
    const { endpointId } = await worker.row(id);
    const setHeaders = (value: string) =>
      worker.deps.database.prisma.webhookEndpoint.update({
        where: { id: endpointId },
        data: { headers: { authorization: value } },
      });
    for (const token of ['one', 'two']) {
      await setHeaders(sealTestSecret(token, `webhook-header:${endpointId}:authorization`));
      await makeDue(id);
      await worker.attempt(id);
    }
    expect(receiver.requests.map(({ headers }) => headers['authorization'])).toEqual(['one', 'two']);
    await setHeaders(sealTestSecret('three', `webhook-header:another:authorization`));
    await makeDue(id);
    expect(await worker.attempt(id)).toBe(false);
    expect(await worker.row(id)).toMatchObject({ status: 'pending', runAttempts: 2 });
    expect(receiver.requests).toHaveLength(2);
  });

  test('keeps the URL and the secret of its first attempt when the endpoint changes', async () => {
    const receiver = await startReceiver((_request, response) => response.writeHead(503).end());
    const id = await worker.newDelivery(receiver.url);
    await worker.attempt(id);
    const { endpointId } = await worker.row(id);
    await worker.sql(`INSERT INTO webhook_secrets SELECT endpoint_id, 2, 'unused', created_at FROM webhook_secrets
      WHERE endpoint_id = '${endpointId}'`);
    await worker.sql(`UPDATE webhook_endpoints SET url = 'http://127.0.0.1:1/', signing_key_version = 2
      WHERE id = '${endpointId}'`);
    await makeDue(id);
    await worker.attempt(id);
    expect(receiver.requests.map(({ headers }) => headers['x-service-signing-key-version'])).toEqual(['1', '1']);
  });

  test('takes the URL and the secret of the endpoint again if it is released before its first attempt', async () => {
    const receiver = await startReceiver((_request, response) => response.writeHead(503).end());
    const id = await worker.newDelivery('http://127.0.0.1:1/');
    const { endpointId } = await worker.row(id);
    const release = async () => worker.deps.settling.release(await worker.claim(endpointId));
    await release();
    expect(await worker.row(id)).toMatchObject({ status: 'pending', runAttempts: 0, url: null, secretVersion: null });
    await worker.sql(`INSERT INTO webhook_secrets VALUES ('${endpointId}', 2,
      '${sealTestSecret(TEST_SECRET, `webhook-secret:${endpointId}:2`)}', now())`);
    await worker.sql(`UPDATE webhook_endpoints SET url = '${receiver.url}', signing_key_version = 2
      WHERE id = '${endpointId}'`);
    await worker.attempt(id);
    expect(receiver.requests[0]!.headers['x-service-signing-key-version']).toBe('2');
    // An attempt was made, so the retry that is released keeps both.
    await makeDue(id);
    await release();
    expect(await worker.row(id)).toMatchObject({ runAttempts: 1, url: receiver.url, secretVersion: 2 });
  });

  test('is signed with the next secret from its activation on, and keeps the version of a run that began before', async () => {
    const receiver = await startReceiver((_request, response) => response.writeHead(503).end());
    const endpointId = await worker.newEndpoint(receiver.url);
    const { database } = worker.deps;
    const next = 'whsec_next';
    const sealVersion = (version: number) => sealTestSecret(next, `webhook-secret:${endpointId}:${version}`);
    const rotation = { sealVersion, activateInSeconds: 3600 };
    await rotateWebhookSecret(database, worker.tenant, endpointId, rotation, NOON);
    const [before] = await worker.emit(endpointId);
    const send = async (id: string) => {
      await makeDue(id);
      await worker.attempt(id);
      const { headers, body } = receiver.requests.at(-1)!;
      const version = headers['x-service-signing-key-version'];
      const secret = version === '2' ? next : TEST_SECRET;
      const signature = String(headers['x-service-signature']);
      const signed = `${signedAt(signature)}.${id}.0.${body.toString('utf8')}`;
      const mac = createHmac('sha256', secret).update(signed).digest('hex');
      expect(signature).toBe(`t=${signedAt(signature)},v1=${mac}`);
      return version;
    };
    expect(await send(before!.id)).toBe('1');
    // Nothing but the time in PostgreSQL activates it.
    await worker.sql(`UPDATE webhook_endpoints SET next_activates_at = now() WHERE id = '${endpointId}'`);
    expect(await send(before!.id)).toBe('1');
    const [after] = await worker.emit(endpointId);
    expect(await send(after!.id)).toBe('2');
    expect((await worker.row(after!.id)).secretVersion).toBe(2);
  });

  test("fails after eight attempts with the contract's delays", async () => {
    const receiver = await startReceiver((_request, response) => response.writeHead(500).end('no'));
    const id = await worker.newDelivery(receiver.url);
    for (const seconds of BACKOFF_SECONDS) {
      await worker.attempt(id);
      expect(await worker.row(id)).toMatchObject({ status: 'pending', completedAt: null });
      const due = await dueInSeconds(id);
      expect(due).toBeLessThanOrEqual(seconds);
      expect(due).toBeGreaterThan(seconds - 2);
      // It is not attempted before it is due.
      expect(await worker.attempt(id)).toBe(false);
      await makeDue(id);
    }
    await worker.attempt(id);
    expect(await worker.row(id)).toMatchObject({
      status: 'failed',
      failureReason: 'attempts_exhausted',
      runAttempts: 8,
    });
    expect(receiver.requests).toHaveLength(8);
    expect((await worker.attempts(id)).map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    await makeDue(id);
    expect(await worker.attempt(id)).toBe(false);
  });

  test('is retried like after 503 when its endpoint retries rejected ones, until the receiver answers 410', async () => {
    let answer = 400;
    const receiver = await startReceiver((_request, response) => response.writeHead(answer).end());
    const id = await worker.newDelivery(receiver.url);
    const { endpointId } = await worker.row(id);
    await worker.sql(`UPDATE webhook_endpoints SET retry_rejected = true WHERE id = '${endpointId}'`);
    for (const [index, seconds] of BACKOFF_SECONDS.slice(0, 3).entries()) {
      await worker.attempt(id);
      expect(await worker.row(id)).toMatchObject({ status: 'pending', failureReason: null, runAttempts: index + 1 });
      const due = await dueInSeconds(id);
      expect(due).toBeLessThanOrEqual(seconds);
      expect(due).toBeGreaterThan(seconds - 2);
      await makeDue(id);
    }
    answer = 410;
    await worker.attempt(id);
    expect(await worker.row(id)).toMatchObject({ status: 'failed', failureReason: 'rejected', runAttempts: 4 });
  });

  test('is not attempted if its endpoint is disabled or deleted', async () => {
    const receiver = await startReceiver();
    for (const change of ['enabled = false', 'deleted_at = now()']) {
      const id = await worker.newDelivery(receiver.url);
      const { endpointId } = await worker.row(id);
      await worker.sql(`UPDATE webhook_endpoints SET ${change} WHERE id = '${endpointId}'`);
      expect(await worker.attempt(id)).toBe(false);
      expect(await worker.row(id)).toMatchObject({ status: 'pending', runAttempts: 0 });
    }
    expect(receiver.requests).toHaveLength(0);
  });
});

describe('the lease of a delivery', () => {
  test('lets a late answer count until another worker claims the row', async () => {
    const receiver = await startReceiver((_request, response) => {
      void worker
        .sql(`UPDATE webhook_deliveries SET lease_expires_at = now() - interval '1 second' WHERE status = 'delivering'`)
        .then(() => response.end());
    });
    const id = await worker.newDelivery(receiver.url);
    await worker.attempt(id);
    expect(await worker.row(id)).toMatchObject({ status: 'succeeded' });
  });
});

test('of two attempts at one delivery in a worker only that with the lease is settled', async () => {
  const receiver = await startReceiver();
  const id = await worker.newDelivery(receiver.url);
  const { endpointId } = await worker.row(id);
  const [lost] = await worker.claim(endpointId);
  const first = await attemptDelivery(worker.deps, lost!);
  // As when a crash of PostgreSQL takes the claim back, which was committed without waiting for the disk.
  await worker.sql(
    `UPDATE webhook_deliveries SET status = 'pending', run_attempts = 0, lease_token = NULL, lease_expires_at = NULL WHERE id = '${id}'`,
  );
  const [held] = await worker.claim(endpointId);
  const second = await attemptDelivery(worker.deps, held!);
  await Promise.all([first!.settle(5), second!.settle(5)]);
  const statuses = () => worker.lines.filter(({ deliveryId }) => deliveryId === id).map(({ status }) => status);
  await eventually(() => statuses().length === 2);
  expect(statuses().sort()).toEqual(['lease_lost', 'succeeded']);
  expect(await worker.attempts(id)).toHaveLength(1);
});

describe('a turn that another worker takes over', () => {
  test('ends the leases of the worker before, whose late answer writes nothing', async () => {
    const { database, leaseMs } = worker.deps;
    const endpointId = await worker.newEndpoint('http://127.0.0.1:1/', { slotMs: 64 });
    const [first, second, other] = await worker.emit(endpointId, 3);
    const held = await worker.claim(endpointId, 3);
    await worker.sql(`UPDATE webhook_deliveries SET lease_token = '${randomUUID()}' WHERE id = '${other!.id}'`);
    await worker.sql(`UPDATE webhook_deliveries SET run_attempts = 8 WHERE id = '${second!.id}'`);
    const tokens = [held[0]!.leaseToken];
    const ended = await takeOverLeases(database.sql, leaseMs, { endpointId, tokens });
    expect(ended.map(({ id, exhausted }) => [id, exhausted]).sort()).toEqual(
      [
        [first!.id, false],
        [second!.id, true],
      ].sort(),
    );
    expect(await worker.row(first!.id)).toMatchObject({ status: 'pending', runAttempts: 1, leaseToken: null });
    expect(await worker.row(second!.id)).toMatchObject({ status: 'failed', failureReason: 'attempts_exhausted' });
    expect(await worker.row(other!.id)).toMatchObject({ status: 'delivering' });
    expect(await worker.attempts(first!.id)).toMatchObject([{ attempt: 1, errorCode: 'LEASE_EXPIRED' }]);
    const late = await attemptDelivery(worker.deps, held[0]!);
    expect(await late!.settle(64)).toBeNull();
    expect(await worker.row(first!.id)).toMatchObject({ status: 'pending', runAttempts: 1 });
  });
});

test('a signing secret that cannot be opened costs the delivery no attempt', async () => {
  const id = await worker.newDelivery('http://127.0.0.1:1/');
  await worker.sql(`UPDATE webhook_secrets SET secret_sealed = 's1.gone.AAAA'
    WHERE endpoint_id = (SELECT endpoint_id FROM webhook_deliveries WHERE id = '${id}')`);
  expect(await worker.attempt(id)).toBe(false);
  expect(await worker.row(id)).toMatchObject({ status: 'pending', runAttempts: 0, leaseToken: null });
  expect(await dueInSeconds(id)).toBeGreaterThan(50);
});
