import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { expect } from '@jest/globals';
import { eventually, listenUntilEnd, spawnApp, type TestApp } from '@callplane/testing';
import { verifyWebhook, type WebhookEvent } from '@callplane/webhook-verifier';
import { startStack } from './faults.testkit.js';

/** A received request; `check` verifies it against the contract. */
interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  event: WebhookEvent;
  deliveryId: string;
  replayCount: number;
  version: number;
  at: Date;
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** @param host an address of this machine that the webhook workers reach. */
export async function startReceiver(host = '127.0.0.1') {
  const requests: Received[] = [];
  const secrets = new Map<string, Map<number, string>>();
  const count = (ids: string[]) => {
    const counts = new Map<string, number>();
    for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
    return counts;
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => undefined).on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { headers, method = '', url: path = '' } = request;
      const body = Buffer.concat(chunks);
      const received: Received = {
        method,
        path,
        headers,
        body,
        event: JSON.parse(body.toString()) as WebhookEvent,
        deliveryId: String(headers['x-service-delivery-id']),
        replayCount: Number(headers['x-service-replay-count']),
        version: Number(headers['x-service-signing-key-version']),
        at: new Date(),
      };
      requests.push(received);
      void Promise.resolve(receiver.answer(received)).then((status) => response.writeHead(status).end());
    });
  });
  const { origin: url } = await listenUntilEnd(server, host);
  const receiver = {
    url,
    requests,
    /** Returns the status of the response; a test may replace it. */
    answer: (_request: Received): number | Promise<number> => 200,
    /** Registers a secret of the endpoint with this path. */
    learn: (path: string, version: number, secret: string) =>
      secrets.set(path, (secrets.get(path) ?? new Map()).set(version, secret)),
    /** The number of requests per event id. */
    counts: () => count(requests.map(({ event }) => event.id)),
    /** The number of requests per room id, for events of one type. */
    rooms: (type: string) =>
      count(requests.filter(({ event }) => event.type === type).map(({ event }) => (event.data['room'] as Room).id)),
    /**
     * Verifies every request, both with Callplane's verifier and with node:crypto alone, and checks that repetitions have
     * identical bytes.
     */
    check() {
      const bodies = new Map<string, string>();
      const deliveries = new Map<string, string>();
      for (const request of requests) {
        const { method, path, headers, body, at, event } = request;
        expect({ method, type: headers['content-type'] }).toEqual({ method: 'POST', type: 'application/json' });
        const known = secrets.get(path) ?? new Map<number, string>();
        const result = verifyWebhook({ headers, rawBody: body, secrets: known, now: at, toleranceSeconds: 60 });
        expect(result).toMatchObject({ ok: true, event, deliveryId: request.deliveryId });
        expect(headers['x-service-signature']).toBe(signature(request, known.get(request.version) ?? ''));
        const text = body.toString('hex');
        expect(bodies.get(event.id) ?? text).toBe(text);
        bodies.set(event.id, text);
        const key = `${path} ${event.id}`;
        expect(deliveries.get(key) ?? request.deliveryId).toBe(request.deliveryId);
        deliveries.set(key, request.deliveryId);
      }
    },
  };
  return receiver;
}

interface Room {
  id: string;
}

/** Computes the signature from the specification, without Callplane's own code. */
function signature({ headers, body, deliveryId, replayCount }: Received, secret: string): string {
  const [, timestamp = ''] = /^t=(\d+),v1=/.exec(String(headers['x-service-signature'])) ?? [];
  const signed = Buffer.concat([Buffer.from(`${timestamp}.${deliveryId}.${replayCount}.`, 'ascii'), body]);
  return `t=${timestamp},v1=${createHmac('sha256', Buffer.from(secret, 'utf8')).update(signed).digest('hex')}`;
}

export type WebhookStack = Awaited<ReturnType<typeof startWebhookStack>>;

/** Allows loopback and http, for the API and the webhook worker. */
const OPEN = { WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8' };

/** @param databaseUrl a PostgreSQL of the test's own; the shared one of the run by default. */
export async function startWebhookStack(databaseUrl?: string) {
  const stack = await startStack(databaseUrl);
  const { prisma, sql } = stack.database;
  return {
    ...stack,
    spawnApi: (env?: Record<string, string>) => stack.spawnApi({ ...OPEN, ...env }),
    /** Scans and sweeps twice a second unless `env` sets another interval. */
    spawnWebhookWorker: (env?: Record<string, string>) =>
      spawnApp({
        name: 'webhook-worker',
        env: { ...OPEN, DATABASE_URL: stack.databaseUrl, REDIS_URL: stack.redis.url, SWEEP_INTERVAL_MS: '500', ...env },
      }),
    /** Registers `<receiver's URL>/hook` for every event and gives the receiver the secret. */
    async register(api: TestApp, receiver: Receiver) {
      const { status, body } = await stack.call(api, 'POST', '/v1/webhooks', {
        body: { url: `${receiver.url}/hook` },
      });
      expect({ status, body }).toMatchObject({ status: 201, body: { signingKeyVersion: 1 } });
      receiver.learn('/hook', 1, String(body.signingSecret));
      return String(body.id);
    },
    /** Resolves once every delivery of a present endpoint has succeeded. */
    async allDelivered() {
      await eventually(
        async () => {
          const open = await prisma.webhookDelivery.groupBy({
            by: ['status'],
            where: { status: { not: 'succeeded' }, endpoint: { deletedAt: null } },
            _count: true,
          });
          expect(open).toEqual([]);
          return true;
        },
        { intervalMs: 50 },
      );
    },
    /** The number of attempts that lost their lease, by event id. */
    async leasesLost() {
      const rows = await sql.$queryRaw<{ eventId: string; count: number }[]>`
        SELECT d.event_id AS "eventId", count(*)::int AS count
        FROM webhook_attempts a JOIN webhook_deliveries d ON d.id = a.delivery_id
        WHERE a.error_code = 'LEASE_EXPIRED' GROUP BY 1`;
      return new Map(rows.map(({ eventId, count }) => [eventId, count]));
    },
  };
}

/** Log lines of delivery attempts. */
export function deliveriesIn(...apps: TestApp[]) {
  return apps.flatMap((app) => app.logs.filter(({ message }) => message === 'delivery attempt'));
}

/** Responses wait for the gate until it is opened. */
export function closedGate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
