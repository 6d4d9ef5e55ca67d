/** Several tenants on one real worker, with receivers that hang, respond slowly, or fail once. */
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createTcpServer, type Server } from 'node:net';
import { createEnvironment, writeEvents } from '@callplane/db';
import { newId, parseMasterKeys, seal, type NewEvent } from '@callplane/core';
import { eventually, listenUntilEnd, TEST_ENCRYPTION_KEYS, type TestApp } from '@callplane/testing';
import { startWebhookStack } from './faults/webhooks.testkit.js';

export interface Tenant {
  projectId: string;
  environmentId: string;
}

export interface Receiver {
  url: string;
  /** The arrival times of the requests, by delivery id. */
  arrivals: Map<string, number[]>;
}

export interface IsolationStage {
  worker: TestApp;
  newTenant(): Promise<Tenant>;
  newEndpoint(tenant: Tenant, url: string): Promise<string>;
  /** Commits deliveries to this endpoint and adds its turn. */
  emit(tenant: Tenant, endpointId: string, count: number): Promise<string[]>;
}

export async function startIsolationStage(env: Record<string, string> = {}): Promise<IsolationStage> {
  const stack = await startWebhookStack();
  const { database, producer } = stack;
  const { projectId } = stack.tenant;
  await eventually(() => producer.redis.status === 'ready');
  const worker = await stack.spawnWebhookWorker({ SWEEP_INTERVAL_MS: '5000', ...env });
  return {
    worker,
    async newTenant() {
      const environmentId = newId('environment');
      await createEnvironment(database.prisma, {
        id: environmentId,
        projectId,
        name: environmentId,
        createdAt: new Date(),
      });
      return { projectId, environmentId };
    },
    async newEndpoint({ environmentId }, endpointUrl) {
      const id = newId('webhookEndpoint');
      const createdAt = new Date();
      const secretSealed = seal(parseMasterKeys([TEST_ENCRYPTION_KEYS]), 'whsec_test', `webhook-secret:${id}:1`);
      await database.prisma.webhookEndpoint.create({
        data: {
          id,
          environmentId,
          url: endpointUrl,
          events: ['*'],
          enabled: true,
          signingKeyVersion: 1,
          createdAt,
          updatedAt: createdAt,
          secrets: { create: { version: 1, secretSealed, createdAt } },
        },
      });
      return id;
    },
    async emit(tenant, endpointId, count) {
      const event: NewEvent = {
        type: 'webhook.test',
        tenant,
        roomId: null,
        participantId: null,
        createdAt: new Date(),
        data: {},
      };
      const events = Array.from({ length: count }, () => event);
      const { deliveries } = await database.transaction((tx) => writeEvents(tx, events, { only: endpointId }));
      await producer.wakeDeliveries(deliveries);
      return deliveries.map(({ id }) => id);
    },
  };
}

const listen = async (server: Server) => (await listenUntilEnd(server)).origin;

/** Accepts connections and never sends a byte. */
export const startTarPit = (): Promise<string> =>
  listen(createTcpServer((socket) => socket.on('error', () => undefined)));

/** @param statusOf the status for the n-th request of a delivery. */
export async function startReceiver(waitMs = 0, statusOf: (attempt: number) => number = () => 200): Promise<Receiver> {
  const arrivals = new Map<string, number[]>();
  const server = createServer((request: IncomingMessage, response) => {
    const id = String(request.headers['x-service-delivery-id']);
    const times = [...(arrivals.get(id) ?? []), performance.now()];
    arrivals.set(id, times);
    setTimeout(() => response.writeHead(statusOf(times.length)).end(), waitMs);
  });
  return { url: await listen(server), arrivals };
}

/** 50 endpoints that hang, each with pending deliveries. */
export async function fiftyHanging(stage: IsolationStage, tenant: Tenant, tarPit: string): Promise<void> {
  for (let n = 0; n < 50; n += 1) await stage.emit(tenant, await stage.newEndpoint(tenant, `${tarPit}/${n}`), 8);
}

/** One endpoint that returns 200 after 1.8 s, with 400 deliveries. */
export async function oneSlow(stage: IsolationStage, tenant: Tenant, slow: Receiver): Promise<void> {
  await stage.emit(tenant, await stage.newEndpoint(tenant, slow.url), 400);
}

export interface Lags {
  proven: number[];
  /** Measured from 5 s after the first failure: the due time without jitter. */
  retries: number[];
  fresh: number[];
}

/**
 * Measures the lags of another tenant for `forMs`: of a proven endpoint, of endpoints that fail once, and of new ones.
 * In milliseconds.
 */
export async function measureTenant(stage: IsolationStage, tenant: Tenant, forMs: number): Promise<Lags> {
  const [proven, fresh, failing] = await Promise.all([
    startReceiver(),
    startReceiver(),
    startReceiver(0, (attempt) => (attempt === 1 ? 503 : 200)),
  ]);
  const provenId = await stage.newEndpoint(tenant, proven.url);
  const lags: Lags = { proven: [], retries: [], fresh: [] };
  const arrival = (receiver: Receiver, id: string, attempt = 1) =>
    eventually(() => receiver.arrivals.get(id)?.[attempt - 1], { intervalMs: 5, timeoutMs: 120_000 });
  const pending: Promise<unknown>[] = [];
  const startedAt = performance.now();
  const [first] = await stage.emit(tenant, provenId, 1);
  await arrival(proven, first as string);
  for (let nextAt = 0; performance.now() - startedAt < forMs;) {
    if (performance.now() - startedAt >= nextAt) {
      nextAt += 5000;
      const at = performance.now();
      const freshId = await stage.newEndpoint(tenant, fresh.url);
      const [delivery] = await stage.emit(tenant, freshId, 1);
      pending.push(arrival(fresh, delivery as string).then((arrived) => lags.fresh.push(arrived - at)));
      const [failed] = await stage.emit(tenant, await stage.newEndpoint(tenant, failing.url), 1);
      pending.push(
        arrival(failing, failed as string).then(async (failedAt) =>
          lags.retries.push((await arrival(failing, failed as string, 2)) - failedAt - 5000),
        ),
      );
    }
    const at = performance.now();
    const [id] = await stage.emit(tenant, provenId, 1);
    lags.proven.push((await arrival(proven, id as string)) - at);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  await Promise.all(pending);
  return lags;
}

export function quantile(values: readonly number[], share: number): number {
  return [...values].sort((one, other) => one - other)[Math.ceil(values.length * share) - 1] ?? NaN;
}
