import { fork } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { newId, parseMasterKeys, seal } from '@callplane/core';
import { freePort } from '@callplane/local-servers';
import { JobProducer } from '@callplane/queue';
import { openBareLoop } from './open-bare-loop.js';
import { median, openStage } from './stage.js';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
/** Deliveries per measurement of lags. With the pauses between them they outlast two deadlines of the tar-pits. */
const LAGS = 250;
const quiet = { onLost: () => undefined, onReady: () => undefined };

/**
 * Webhook deliveries: one worker against a bare loop, several workers against one, the time from an answer to the first
 * byte, and the delay that tar-pits cause for a healthy endpoint.
 */
export async function run() {
  const stage = await openStage();
  const fast = await openReceiver(0);
  const slow = await openReceiver(50);
  const pool = new pg.Pool({ connectionString: stage.environment.DATABASE_URL, max: 2 });
  const producer = new JobProducer(stage.environment.REDIS_URL, quiet);
  try {
    await stage.rtc('db', 'migrate');
    const { id: project } = await stage.rtc('projects', 'create', '--name', 'bench');
    const { id: environment } = await stage.rtc('environments', 'create', '--project', project, '--name', 'bench');
    const { key } = await stage.rtc('keys', 'create', '--env', environment, '--type', 'secret');
    const open = { WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8' };
    const apiPort = String(await freePort());
    const api = `http://127.0.0.1:${apiPort}`;
    await stage.run('apps/api/dist/main.js', { ...open, PORT: apiPort, HOST: '127.0.0.1' }, `${api}/readyz`);
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const endpoint = async (url: string, events: string[]) => {
      const response = await fetch(`${api}/v1/webhooks`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ url, events }),
      });
      return ((await response.json()) as { id: string }).id;
    };
    const toFast = await endpoint(`${fast.url}/fast`, ['webhook.test']);
    const toSlow = await endpoint(`${slow.url}/slow`, ['webhook.test']);
    const startWorker = async () => {
      const port = String(await freePort());
      return stage.run(
        'apps/webhook-worker/dist/main.js',
        { ...open, HEALTH_PORT: port, HEALTH_HOST: '127.0.0.1' },
        `http://127.0.0.1:${port}/readyz`,
      );
    };
    // Like endpoints with a long history of quick answers.
    await pool.query('UPDATE webhook_endpoints SET slot_ms = 64');
    const masterKeys = parseMasterKeys([stage.environment.ENCRYPTION_KEYS]);
    const many = Array.from({ length: 100 }, () => newId('webhookEndpoint'));
    for (const id of many) {
      await pool.query(
        `WITH endpoint AS (
           INSERT INTO webhook_endpoints (id, environment_id, url, events, enabled, signing_key_version, slot_ms,
             created_at, updated_at)
           VALUES ($1, $2, $3, '{none}', true, 1, 64, now(), now()) RETURNING id
         )
         INSERT INTO webhook_secrets (endpoint_id, version, secret_sealed, created_at) SELECT id, 1, $4, now() FROM endpoint`,
        [id, environment, `${fast.url}/many`, seal(masterKeys, 'whsec_bench', `webhook-secret:${id}:1`)],
      );
    }

    /** Inserts pending deliveries and wakes them; resolves to the number of arrivals per second. */
    const deliver = async (
      endpointIds: string | readonly string[],
      receiver: Awaited<ReturnType<typeof openReceiver>>,
      count: number,
      doorbells = true,
    ) => {
      const { rows } = await pool.query(
        `WITH event AS (
           INSERT INTO events (id, environment_id, type, body, created_at)
           SELECT callplane_typeid('evt'), $1, 'webhook.test', '{"id":"bench","data":{"text":"' || repeat('x', 500) || '"}}', now()
           FROM generate_series(1, $3) RETURNING id
         )
         INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, created_at)
         SELECT callplane_typeid('dlv'), $1, ($2::text[])[1 + row_number() OVER () % cardinality($2::text[])], id,
           'webhook.test', 'pending', now() FROM event
         RETURNING id, endpoint_id AS "endpointId", environment_id AS "environmentId", 64 AS "slotMs"`,
        [environment, [endpointIds].flat(), count],
      );
      const arrived = receiver.arrivals(count);
      for (let at = 0; doorbells && at < rows.length; at += 100)
        await producer.wakeDeliveries(rows.slice(at, at + 100));
      return rateOf(await arrived);
    };

    await startWorker();
    const loop = await openBareLoop(stage);
    const bare = async (receiver: Awaited<ReturnType<typeof openReceiver>>, count: number) =>
      rateOf(await loop.send(receiver, count));

    console.log('| what | value | goal |\n| --- | --- | --- |');
    await deliver(toFast, fast, 300);
    await bare(fast, 300);
    const zero = [];
    for (let round = 0; round < ROUNDS; round++) {
      const floor = await bare(fast, 1500);
      const own = await deliver(toFast, fast, 1500);
      zero.push({ floor, own, ratio: own / floor });
    }
    const ratios = zero.map(({ ratio }) => ratio);
    console.log(
      `| one worker, receiver 0 ms, against the bare loop | ${median(zero.map((r) => r.own)).toFixed(0)} of ${median(zero.map((r) => r.floor)).toFixed(0)} /s: ` +
        `${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}) | 0.50 |`,
    );
    const overMany = [];
    for (let round = 0; round < ROUNDS; round++) {
      const floor = await bare(fast, 1500);
      overMany.push((await deliver(many, fast, 1500)) / floor);
    }
    console.log(
      `| the same over ${many.length} endpoints | ${median(overMany).toFixed(2)} (${Math.min(...overMany).toFixed(2)}-${Math.max(...overMany).toFixed(2)}) | 0.90 |`,
    );
    stage.signalRedis('SIGSTOP');
    const withoutRedis = [];
    for (let round = 0; round < ROUNDS; round++) withoutRedis.push(await deliver(toFast, fast, 1500, false));
    stage.signalRedis('SIGCONT');
    const usual = median(zero.map((r) => r.own));
    console.log(
      `| one worker, receiver 0 ms, Redis frozen, against the same with Redis | ${median(withoutRedis).toFixed(0)} of ${usual.toFixed(0)} /s: ` +
        `${(median(withoutRedis) / usual).toFixed(2)} | 0.50 |`,
    );
    const byWorkers: Record<number, number> = {};
    for (const [workers, count] of [
      [1, 300],
      [2, 600],
      [4, 1200],
      [8, 2400],
    ] as const) {
      while (Object.keys(byWorkers).length > 0 && stage.running('webhook-worker') < workers) await startWorker();
      const rates = [];
      for (let round = 0; round < 3; round++) rates.push(await deliver(toSlow, slow, count));
      byWorkers[workers] = median(rates);
    }
    const [one = NaN, two = NaN, four = NaN, eight = NaN] = [1, 2, 4, 8].map((workers) => byWorkers[workers]);
    console.log(
      `| one worker, receiver 50 ms, against 80 /s | ${one.toFixed(1)} /s: ${(one / 80).toFixed(2)} | 0.95 |`,
    );
    console.log(`| two workers against one, 50 ms | ${two.toFixed(1)} /s: ${(two / one).toFixed(2)} | 1.8 |`);
    console.log(`| four workers against one, 50 ms | ${four.toFixed(1)} /s: ${(four / one).toFixed(2)} | 3.4 |`);
    console.log(`| eight workers against one, 50 ms | ${eight.toFixed(1)} /s: ${(eight / one).toFixed(2)} | |`);
    await stage.stopOthers('webhook-worker', 0);
    await startWorker();

    const toLatency = await endpoint(`${fast.url}/latency`, ['room.created']);
    await pool.query('UPDATE webhook_endpoints SET slot_ms = 64 WHERE id = $1', [toLatency]);
    const lags = [];
    for (let n = 0; n < 200; n++) {
      const arrived = fast.arrivals(1);
      const response = await fetch(`${api}/v1/rooms`, { method: 'POST', headers, body: '{"name":"lag"}' });
      const answeredMs = performance.timeOrigin + performance.now();
      await response.text();
      lags.push(((await arrived)[0]?.atMs ?? NaN) - answeredMs);
    }
    lags.sort((a, b) => a - b);
    console.log(
      `| answer to first byte, idle | median ${median(lags).toFixed(1)} ms, p99 ${lags[Math.floor(lags.length * 0.99)]?.toFixed(1)} ms | 15 / 100 |`,
    );
    await stage.stopOthers('webhook-worker');
    const without = await lagsOf(() => deliver(toFast, fast, 1), LAGS);
    for (let pit = 0; pit < 4; pit++) {
      const tarPit = await endpoint(`${slow.url}/tarpit`, ['webhook.test']);
      void deliver(tarPit, slow, 50);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const withPits = await lagsOf(() => deliver(toFast, fast, 1), LAGS);
    console.log(`| lag of a proven endpoint, idle | ${inWords(without)} | |`);
    console.log(`| the same beside four tar-pits of 50 deliveries | ${inWords(withPits)} | p95 2000 ms |`);
  } finally {
    await producer.close();
    await pool.end();
    fast.close();
    slow.close();
    await stage.close();
  }
}

/** The lag of each delivery, from its wake-up to its arrival, in milliseconds. Sends one after another. */
async function lagsOf(deliver: () => Promise<unknown>, count: number) {
  const lags = [];
  for (let n = 0; n < count; n++) {
    const startedAt = performance.now();
    await deliver();
    lags.push(performance.now() - startedAt);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return lags.sort((a, b) => a - b);
}

/** @param lags in ascending order */
function inWords(lags: number[]) {
  const at = (share: number) => (lags[Math.ceil(lags.length * share) - 1] ?? NaN).toFixed(1);
  return `p50 ${at(0.5)}, p95 ${at(0.95)}, max ${at(1)} ms`;
}

function rateOf(arrivals: { atMs: number }[]) {
  const [first] = arrivals;
  const last = arrivals.at(-1);
  if (first === undefined || last === undefined) return NaN;
  return ((arrivals.length - 1) / (last.atMs - first.atMs)) * 1000;
}

export async function openReceiver(waitMs: number) {
  const child = fork(join(import.meta.dirname, 'receiver.js'), [String(waitMs)]);
  const port = await new Promise<number>((resolve) =>
    child.once('message', (message) => resolve((message as { port: number }).port)),
  );
  return {
    url: `http://127.0.0.1:${port}`,
    /** Resolves after `count` more requests have arrived. */
    arrivals: (count: number) =>
      new Promise((resolve: (arrivals: { atMs: number }[]) => void) => {
        const seen: { atMs: number }[] = [];
        const note = (message: any) => {
          seen.push(message);
          if (seen.length < count) return;
          child.off('message', note);
          resolve(seen);
        };
        child.on('message', note);
      }),
    close: () => child.kill(),
  };
}
