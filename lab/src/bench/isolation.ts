import { fork } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { newId, parseMasterKeys, seal } from '@callplane/core';
import { freePort } from '@callplane/local-servers';
import { JobProducer } from '@callplane/queue';
import { openStage } from './stage.js';

/** How long each load is measured, in seconds: at least four deadlines of a hanging receiver. */
const SECONDS = Number(process.env.BENCH_SECONDS ?? 45);
const quiet = { onLost: () => undefined, onReady: () => undefined };
const LOADS: readonly [string, boolean, boolean][] = [
  ['50 hanging endpoints', true, false],
  ['one slow endpoint', false, true],
  ['both', true, true],
];

/**
 * Tenants next to each other: the service that one worker gives a tenant while 1, 10 or 100 other environments have
 * hanging endpoints (50 each) or an endpoint that answers after 1.8 s (with 400 deliveries).
 */
export async function run() {
  console.log('| environments with … each | proven p95 | retry after a 503, at most | new endpoint, at most |');
  console.log('| --- | --- | --- | --- |');
  for (const environments of [1, 10, 100]) for (const load of LOADS) await measure(environments, ...load);
  console.log('| goal | 2 s | 10 s after due | 15 s |');
}

async function measure(environments: number, name: string, hasHanging: boolean, hasSlow: boolean) {
  const stage = await openStage();
  const receiver = fork(join(import.meta.dirname, 'receiver.js'), ['0']);
  stage.onClose(() => Promise.resolve(receiver.kill()));
  const receiverPort = await new Promise<number>((resolve) =>
    receiver.once('message', (message) => resolve((message as { port: number }).port)),
  );
  const arrivals = new Map<string, number[]>();
  receiver.on('message', ({ atMs, deliveryId }: { atMs: number; deliveryId: string }) => {
    arrivals.set(deliveryId, [...(arrivals.get(deliveryId) ?? []), atMs]);
  });
  const pool = new pg.Pool({ connectionString: stage.environment.DATABASE_URL, max: 2 });
  const producer = new JobProducer(stage.environment.REDIS_URL, quiet);
  try {
    await stage.rtc('db', 'migrate');
    const { id: projectId } = await stage.rtc('projects', 'create', '--name', 'bench');
    const masterKeys = parseMasterKeys([stage.environment.ENCRYPTION_KEYS]);
    const newEnvironment = async () => {
      const id = newId('environment');
      await pool.query('INSERT INTO environments (id, project_id, name, created_at) VALUES ($1, $2, $1, now())', [
        id,
        projectId,
      ]);
      return id;
    };
    const newEndpoint = async (environmentId: string, path: string) => {
      const id = newId('webhookEndpoint');
      const sealed = seal(masterKeys, 'whsec_bench', `webhook-secret:${id}:1`);
      await pool.query(
        `WITH endpoint AS (
           INSERT INTO webhook_endpoints (id, environment_id, url, events, enabled, signing_key_version, created_at, updated_at)
           VALUES ($1, $2, $3, '{*}', true, 1, now(), now()) RETURNING id
         )
         INSERT INTO webhook_secrets (endpoint_id, version, secret_sealed, created_at) SELECT id, 1, $4, now() FROM endpoint`,
        [id, environmentId, `http://127.0.0.1:${receiverPort}${path}`, sealed],
      );
      return id;
    };
    const emit = async (environmentId: string, endpointId: string, count = 1) => {
      const { rows } = await pool.query(
        `WITH event AS (
           INSERT INTO events (id, environment_id, type, body, created_at)
           SELECT callplane_typeid('evt'), $1, 'webhook.test', '{}', now() FROM generate_series(1, $3) RETURNING id
         )
         INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, created_at)
         SELECT callplane_typeid('dlv'), $1, $2, id, 'webhook.test', 'pending', now() FROM event
         RETURNING id, endpoint_id AS "endpointId", environment_id AS "environmentId",
           (SELECT slot_ms FROM webhook_endpoints e WHERE e.id = endpoint_id) AS "slotMs"`,
        [environmentId, endpointId, count],
      );
      await producer.wakeDeliveries(rows);
      return rows[0].id as string;
    };
    const port = String(await freePort());
    await stage.run(
      'apps/webhook-worker/dist/main.js',
      {
        WEBHOOK_ALLOW_HTTP: 'true',
        WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
        HEALTH_PORT: port,
        HEALTH_HOST: '127.0.0.1',
      },
      `http://127.0.0.1:${port}/readyz`,
    );
    for (let n = 0; n < environments; n += 1) {
      const hostile = await newEnvironment();
      for (let at = 0; hasHanging && at < 50; at += 1) await emit(hostile, await newEndpoint(hostile, '/tarpit'), 8);
      if (hasSlow) await emit(hostile, await newEndpoint(hostile, '/wait/1800'), 400);
    }
    const own = await newEnvironment();
    const proven = await newEndpoint(own, '/proven');
    await pool.query('UPDATE webhook_endpoints SET slot_ms = 64 WHERE id = $1', [proven]);
    const arrived = async (id: string, attempt = 1) => {
      for (;;) {
        const at = arrivals.get(id)?.[attempt - 1];
        if (at !== undefined) return at;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    const nowMs = () => performance.timeOrigin + performance.now();
    const lags: Record<'proven' | 'retries' | 'fresh', number[]> = { proven: [], retries: [], fresh: [] };
    const others = [];
    await arrived(await emit(own, proven));
    const startedAtMs = nowMs();
    for (let next = 0; nowMs() - startedAtMs < SECONDS * 1000;) {
      if (nowMs() - startedAtMs >= next) {
        next += 5000;
        const at = nowMs();
        const fresh = await emit(own, await newEndpoint(own, '/fresh'));
        others.push(arrived(fresh).then((atMs) => lags.fresh.push(atMs - at)));
        const failing = await emit(own, await newEndpoint(own, '/once503'));
        others.push(
          arrived(failing).then(async (atMs) => lags.retries.push((await arrived(failing, 2)) - atMs - 5000)),
        );
      }
      const at = nowMs();
      lags.proven.push((await arrived(await emit(own, proven))) - at);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    await Promise.all(others);
    const at = (values: number[], share: number) =>
      (values.sort((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? NaN).toFixed(0);
    console.log(
      `| ${environments} with ${name} | ${at(lags.proven, 0.95)} ms of ${lags.proven.length} | ` +
        `${at(lags.retries, 1)} ms of ${lags.retries.length} | ${at(lags.fresh, 1)} ms of ${lags.fresh.length} |`,
    );
  } finally {
    await producer.close();
    await pool.end();
    await stage.close();
  }
}
