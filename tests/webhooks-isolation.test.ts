/**
 * Several tenants on one real worker, with receivers that hang, respond slowly, or fail once: the two cases that once
 * delayed a tenant's deliveries for minutes.
 */
import { createServer } from 'node:http';
import { createServer as createTcpServer, type Server } from 'node:net';
import { newId, parseMasterKeys, seal } from '@callplane/core';
import { writeEvents } from '@callplane/db';
import {
  createTestTenant,
  eventually,
  listenUntilEnd,
  TEST_ENCRYPTION_KEYS,
  type TestTenant,
} from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';
import { startWebhookStack, type WebhookStack } from './faults/webhooks.testkit.js';

interface Receiver {
  url: string;
  /** The arrival times of the requests, by delivery id. */
  arrivals: Map<string, number[]>;
}

/** How long another tenant is measured. */
const MEASURED_MS = 8000;

let stack: WebhookStack;
beforeAll(async () => {
  stack = await startWebhookStack();
  await eventually(() => stack.producer.redis.status === 'ready');
  // A fifth of the contract's deadline, so that several attempts hang within the test.
  await stack.spawnWebhookWorker({ SWEEP_INTERVAL_MS: '5000', DELIVERY_DEADLINE_MS: '2000' });
});

async function newEndpoint({ environmentId }: TestTenant, url: string): Promise<string> {
  const id = newId('webhookEndpoint');
  const createdAt = new Date();
  const secretSealed = seal(parseMasterKeys([TEST_ENCRYPTION_KEYS]), 'whsec_test', `webhook-secret:${id}:1`);
  const times = { createdAt, updatedAt: createdAt };
  const secrets = { create: { version: 1, secretSealed, createdAt } };
  const settings = { url, events: ['*'], enabled: true, signingKeyVersion: 1 };
  await stack.database.prisma.webhookEndpoint.create({ data: { id, environmentId, ...settings, ...times, secrets } });
  return id;
}

/** Commits deliveries to this endpoint, and adds its turn. Returns the id of the first one. */
async function emit(tenant: TestTenant, endpointId: string, count: number): Promise<string> {
  const event = { type: 'webhook.test' as const, tenant, roomId: null, participantId: null, data: {} };
  const events = Array.from({ length: count }, () => ({ ...event, createdAt: new Date() }));
  const { deliveries } = await stack.database.transaction((tx) => writeEvents(tx, events, { only: endpointId }));
  await stack.producer.wakeDeliveries(deliveries);
  return deliveries[0]!.id;
}

const listen = async (server: Server) => (await listenUntilEnd(server)).origin;

/** @param statusOf the status for the n-th request of a delivery. */
async function startReceiver(waitMs = 0, statusOf: (attempt: number) => number = () => 200): Promise<Receiver> {
  const arrivals = new Map<string, number[]>();
  const server = createServer((request, response) => {
    const id = String(request.headers['x-service-delivery-id']);
    const times = [...(arrivals.get(id) ?? []), performance.now()];
    arrivals.set(id, times);
    setTimeout(() => response.writeHead(statusOf(times.length)).end(), waitMs);
  });
  return { url: await listen(server), arrivals };
}

const LOADS: Record<string, (tenant: TestTenant) => Promise<void>> = {
  '50 endpoints that hang': async (tenant) => {
    // Accepts connections and never sends a byte.
    const url = await listen(createTcpServer((socket) => socket.on('error', () => undefined)));
    for (let n = 0; n < 50; n += 1) await emit(tenant, await newEndpoint(tenant, `${url}/${n}`), 8);
  },
  'one slow endpoint with 400 deliveries': async (tenant) => {
    await emit(tenant, await newEndpoint(tenant, (await startReceiver(1800)).url), 400);
  },
};

const arrival = (receiver: Receiver, id: string, attempt = 1) =>
  eventually(() => receiver.arrivals.get(id)?.[attempt - 1], { intervalMs: 5, timeoutMs: 120_000 });

/** The lags in milliseconds of a proven endpoint, of the retries of endpoints that fail once, and of new endpoints. */
async function lagsOf(tenant: TestTenant) {
  const failing = await startReceiver(0, (attempt) => (attempt === 1 ? 503 : 200));
  const [proven, fresh] = [await startReceiver(), await startReceiver()];
  const lags = { proven: [] as number[], retries: [] as number[], fresh: [] as number[] };
  const toFresh = async () => {
    const atMs = performance.now();
    const id = await emit(tenant, await newEndpoint(tenant, fresh.url), 1);
    lags.fresh.push((await arrival(fresh, id)) - atMs);
  };
  const toFailing = async () => {
    const id = await emit(tenant, await newEndpoint(tenant, failing.url), 1);
    const failedAtMs = await arrival(failing, id);
    // From the due time without jitter.
    lags.retries.push((await arrival(failing, id, 2)) - failedAtMs - 5000);
  };
  const provenId = await newEndpoint(tenant, proven.url);
  await arrival(proven, await emit(tenant, provenId, 1));
  const startedAtMs = performance.now();
  const others = [toFresh(), toFailing()];
  while (performance.now() - startedAtMs < MEASURED_MS) {
    const atMs = performance.now();
    lags.proven.push((await arrival(proven, await emit(tenant, provenId, 1))) - atMs);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  others.push(toFresh(), toFailing());
  await Promise.all(others);
  return lags;
}

test.each(Object.keys(LOADS))('%s of one tenant delay neither deliveries nor retries of another', async (load) => {
  await LOADS[load]!(await createTestTenant(stack.database));
  const { proven, retries, fresh } = await lagsOf(await createTestTenant(stack.database));
  const quantile = (share: number) => proven.sort((a, b) => a - b)[Math.ceil(proven.length * share) - 1];
  // The hostile load alone needs minutes. A busy machine exceeds these bounds only if the scheduler is at fault.
  expect(quantile(0.5)).toBeLessThan(5000);
  expect(quantile(0.95)).toBeLessThan(15_000);
  expect(Math.max(...retries)).toBeLessThan(20_000);
  expect(Math.max(...fresh)).toBeLessThan(30_000);
});
