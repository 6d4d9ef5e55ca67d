import { fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { newId, parseMasterKeys, seal, type IdKind } from '@callplane/core';
import { NODE_FLAGS } from '@callplane/local-servers';
import { JobProducer } from '@callplane/queue';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import type { Stage } from '../fleet/stage.js';

/** A request that the receiver has read. */
export interface Arrival {
  /** Milliseconds since 1970. */
  atMs: number;
  deliveryId: string;
}

/** The receiver of a benchmark, in a process of its own. It ends with the stage. */
export type BenchReceiver = Awaited<ReturnType<typeof openReceiver>>;

/** @param waitMs how long it waits before it answers. */
export async function openReceiver(stage: Stage, waitMs = 0) {
  const child = fork(join(import.meta.dirname, 'receiver-process.js'), [String(waitMs)]);
  stage.onClose(() => child.kill());
  const url = await new Promise<string>((resolve) => child.once('message', resolve as () => void));
  const arrivals = new Map<string, number[]>();
  child.on('message', ({ atMs, deliveryId }: Arrival) => {
    arrivals.set(deliveryId, [...(arrivals.get(deliveryId) ?? []), atMs]);
  });
  return {
    url,
    arrivals: (count: number) =>
      new Promise((resolve: (arrivals: Arrival[]) => void) => {
        const seen: Arrival[] = [];
        const note = (message: Arrival) => {
          seen.push(message);
          if (seen.length < count) return;
          child.off('message', note);
          resolve(seen);
        };
        child.on('message', note);
      }),
    /** When the requests of a delivery have arrived so far, in milliseconds since 1970. */
    arrivalsOf: (deliveryId: string): readonly number[] => arrivals.get(deliveryId) ?? [],
    /** When an attempt of a delivery has arrived, or will. */
    async arrivalOf(deliveryId: string, attempt = 1): Promise<number> {
      for (;;) {
        const atMs = arrivals.get(deliveryId)?.[attempt - 1];
        if (atMs !== undefined) return atMs;
        await delay(5);
      }
    },
  };
}

/** Endpoints and deliveries, written into PostgreSQL, with the jobs that announce them. */
export function openWebhooks(stage: Stage) {
  const { environment, tenant } = stage;
  const pool = new pg.Pool({ connectionString: environment.DATABASE_URL, max: 2 });
  stage.onClose(() => pool.end());
  const producer = new JobProducer(environment.REDIS_URL, { onLost: () => undefined, onReady: () => undefined });
  stage.onClose(() => producer.close());
  const masterKeys = parseMasterKeys([environment.ENCRYPTION_KEYS]);
  return {
    pool,
    producer,
    async newEnvironment(): Promise<string> {
      const id = newId('environment');
      await pool.query('INSERT INTO environments (id, project_id, name, created_at) VALUES ($1, $2, $1, now())', [
        id,
        tenant.projectId,
      ]);
      return id;
    },
    /** @param isProven as with a long history of quick answers. */
    async newEndpoint(url: string, { isProven = true, environmentId = tenant.environmentId } = {}): Promise<string> {
      const id = newId('webhookEndpoint');
      const sealed = seal(masterKeys, 'whsec_bench', `webhook-secret:${id}:1`);
      await pool.query(
        `WITH endpoint AS (
           INSERT INTO webhook_endpoints (id, environment_id, url, events, enabled, signing_key_version, created_at,
             updated_at, slot_ms)
           VALUES ($1, $2, $3, '{webhook.test}', true, 1, now(), now(), CASE WHEN $5 THEN 64 END) RETURNING id
         )
         INSERT INTO webhook_secrets (endpoint_id, version, secret_sealed, created_at) SELECT id, 1, $4, now() FROM endpoint`,
        [id, environmentId, url, sealed, isProven],
      );
      return id;
    },
    /** Inserts pending deliveries, and announces them unless `isAnnounced` is false. @returns the id of the first. */
    async emit(
      endpointIds: string | readonly string[],
      count = 1,
      { isAnnounced = true, environmentId = tenant.environmentId } = {},
    ): Promise<string> {
      const { rows } = await pool.query<{
        id: string;
        endpointId: string;
        environmentId: string;
        slotMs: number | null;
      }>(
        `WITH event AS (
           INSERT INTO events (id, environment_id, type, body, created_at)
           SELECT ${idOf('event')}, $1, 'webhook.test', '${BODY}', now() FROM generate_series(1, $3) RETURNING id
         )
         INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, created_at)
         SELECT ${idOf('delivery')}, $1, ($2::text[])[1 + row_number() OVER () % cardinality($2::text[])], id,
           'webhook.test', 'pending', now() FROM event
         RETURNING id, endpoint_id AS "endpointId", environment_id AS "environmentId",
           (SELECT slot_ms FROM webhook_endpoints e WHERE e.id = endpoint_id) AS "slotMs"`,
        [environmentId, [endpointIds].flat(), count],
      );
      for (let at = 0; isAnnounced && at < rows.length; at += 100)
        await producer.wakeDeliveries(rows.slice(at, at + 100));
      return String(rows[0]?.id);
    },
    /** Resolves once no delivery is open. */
    async atRest() {
      for (;;) {
        const sql = `SELECT 1 FROM webhook_deliveries WHERE status IN ('pending', 'delivering') LIMIT 1`;
        if ((await pool.query(sql)).rowCount === 0) return;
        await delay(20);
      }
    },
  };
}

/** Of every event. */
const BODY = `{"id":"bench","data":{"text":"${'x'.repeat(500)}"}}`;

/** Starts the floor of deliveries in a process of its own. It ends with the stage. */
export async function openBareLoop(stage: Stage) {
  const loop = fork(join(import.meta.dirname, 'bare-loop.js'), {
    execArgv: NODE_FLAGS,
    env: { ...process.env, REDIS_URL: stage.environment.REDIS_URL },
  });
  await new Promise((resolve) => loop.once('message', resolve));
  const redis = new Redis(stage.environment.REDIS_URL, { maxRetriesPerRequest: null });
  const queue = new Queue('bare-loop', { connection: redis });
  stage.onClose(async () => {
    loop.kill('SIGKILL');
    await queue.close();
    redis.disconnect();
  });
  return {
    pid: Number(loop.pid),
    /** Sends requests to a receiver. Resolves as `receiver.arrivals` does. */
    async send({ url, arrivals }: BenchReceiver, count: number): Promise<Arrival[]> {
      const arrived = arrivals(count);
      await queue.addBulk(Array.from({ length: count }, () => ({ name: 'post', data: { url, body: BODY } })));
      return arrived;
    },
  };
}

/** An expression for ids of this moment. */
const idOf = (kind: IdKind): string => `'${newId(kind).slice(0, -16)}' || substr(md5(random()::text), 1, 16)`;
