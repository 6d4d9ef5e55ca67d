import { createServer } from 'node:http';
import type { Server } from 'node:net';
import { newId, parseMasterKeys, seal } from '@callplane/core';
import { writeEvents } from '@callplane/db';
import { eventually, listenUntilEnd, TEST_ENCRYPTION_KEYS, type TestTenant } from '@callplane/testing';
import { startWebhookStack } from './faults/webhooks.testkit.js';

interface Receiver {
  url: string;
  /** The arrival times of the requests, by delivery id. */
  arrivals: Map<string, number[]>;
}

/** Like the stack of the fault tests, with endpoints and deliveries that are written without the API. */
export async function startIsolationStack() {
  const stack = await startWebhookStack();
  const { database, producer } = stack;
  await eventually(() => producer.redis.status === 'ready');
  // A fifth of the contract's deadline, so that several attempts hang within the test.
  await stack.spawnWebhookWorker({ SWEEP_INTERVAL_MS: '5000', DELIVERY_DEADLINE_MS: '2000' });
  return {
    database,
    async newEndpoint({ environmentId }: TestTenant, url: string): Promise<string> {
      const id = newId('webhookEndpoint');
      const createdAt = new Date();
      const secretSealed = seal(parseMasterKeys([TEST_ENCRYPTION_KEYS]), 'whsec_test', `webhook-secret:${id}:1`);
      const times = { createdAt, updatedAt: createdAt };
      const secrets = { create: { version: 1, secretSealed, createdAt } };
      const settings = { url, events: ['*'], enabled: true, signingKeyVersion: 1 };
      await database.prisma.webhookEndpoint.create({ data: { id, environmentId, ...settings, ...times, secrets } });
      return id;
    },

    /** Commits deliveries to this endpoint, and adds its turn. Returns the id of the first one. */
    async emit(tenant: TestTenant, endpointId: string, count: number): Promise<string> {
      const event = { type: 'webhook.test' as const, tenant, roomId: null, participantId: null, data: {} };
      const events = Array.from({ length: count }, () => ({ ...event, createdAt: new Date() }));
      const { deliveries } = await database.transaction((tx) => writeEvents(tx, events, { only: endpointId }));
      await producer.wakeDeliveries(deliveries);
      return deliveries[0]!.id;
    },
  };
}

export const listen = async (server: Server) => (await listenUntilEnd(server)).origin;

/** @param statusOf the status for the n-th request of a delivery. */
export async function startReceiver(waitMs = 0, statusOf: (attempt: number) => number = () => 200): Promise<Receiver> {
  const arrivals = new Map<string, number[]>();
  const server = createServer((request, response) => {
    const id = String(request.headers['x-service-delivery-id']);
    const times = [...(arrivals.get(id) ?? []), performance.now()];
    arrivals.set(id, times);
    setTimeout(() => response.writeHead(statusOf(times.length)).end(), waitMs);
  });
  return { url: await listen(server), arrivals };
}

export const arrival = (receiver: Receiver, id: string, attempt = 1) =>
  eventually(() => receiver.arrivals.get(id)?.[attempt - 1], { intervalMs: 5, timeoutMs: 120_000 });
