import { newId, type AttemptOutcome, type DeliveryFailureReason } from '@callplane/core';
import type { TestApi } from '../api.testkit.js';

/** Creates an endpoint through the API, and returns it with its signing secret. */
export async function webhook(
  api: TestApi,
  body: object = {},
  key: string = api.tenant.key,
): Promise<{ id: string; path: string; signingSecret: string; body: Record<string, any> }> {
  const response = await api.call('POST', '/v1/webhooks', { key, body: { url: 'https://example.com/hook', ...body } });
  if (response.status !== 201) throw new Error(`not created: ${response.text}`);
  const { id, signingSecret } = response.body as { id: string; signingSecret: string };
  return { id, path: `/v1/webhooks/${id}`, signingSecret, body: response.body as Record<string, any> };
}

/** Creates a pending delivery of a test event to the endpoint. */
export async function delivery(api: TestApi, path: string): Promise<{ id: string; path: string }> {
  const response = await api.call('POST', `${path}/test`);
  if (response.status !== 202) throw new Error(`not accepted: ${response.text}`);
  const { id } = response.body as { id: string };
  return { id, path: `${path}/deliveries/${id}` };
}

/** Ends a delivery as a worker does. */
export async function finish(
  api: TestApi,
  deliveryId: string,
  failureReason: DeliveryFailureReason | null = 'attempts_exhausted',
): Promise<void> {
  await api.database.prisma.webhookDelivery.update({
    where: { id: deliveryId },
    data: {
      status: failureReason === null ? 'succeeded' : 'failed',
      failureReason,
      completedAt: new Date(),
      runAttempts: 8,
      url: 'https://pinned.example.com/',
      secretVersion: 1,
      leaseToken: null,
      leaseExpiresAt: null,
    },
  });
}

/** Records an attempt as a worker does. */
export async function attempt(
  api: TestApi,
  deliveryId: string,
  attempt: number,
  outcome: AttemptOutcome = 'response',
): Promise<string> {
  const id = newId('attempt');
  const { endpointId } = await api.database.prisma.webhookDelivery.findUniqueOrThrow({ where: { id: deliveryId } });
  await api.database.prisma.webhookAttempt.create({
    data: {
      id,
      deliveryId,
      endpointId,
      replayCount: 0,
      attempt,
      url: 'https://pinned.example.com/',
      signingKeyVersion: 1,
      startedAt: new Date(),
      durationMs: 12,
      outcome,
      statusCode: outcome === 'response' ? 503 : null,
      errorCode: outcome === 'dns' ? 'ENOTFOUND' : null,
      address: '93.184.216.34',
      dnsMs: 1,
      connectMs: 2,
      tlsMs: 3,
      firstByteMs: 4,
      responseBody: 'maintenance',
      exchange: {
        request: { signedAt: 1_795_000_000, signature: '0123abcd' },
        responseHeaders: { server: 'nginx' },
      },
    },
  });
  return id;
}

/** Marks a delivery as leased by a worker. */
export async function lease(api: TestApi, deliveryId: string): Promise<void> {
  await api.database.prisma.webhookDelivery.update({
    where: { id: deliveryId },
    data: {
      status: 'delivering',
      runAttempts: 1,
      url: 'https://example.com/hook',
      secretVersion: 1,
      leaseToken: crypto.randomUUID(),
      leaseExpiresAt: new Date(Date.now() + 60_000),
    },
  });
}
