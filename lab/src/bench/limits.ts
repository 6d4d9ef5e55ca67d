import { fork } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { newId, parseMasterKeys, seal } from '@callplane/core';
import { freePort } from '@callplane/local-servers';
import { JobProducer } from '@callplane/queue';
import { median, openStage } from './stage.js';

const PER_SECOND = 100;
/** How long the limited endpoint has deliveries to send, in seconds. */
const SECONDS = Number(process.env.BENCH_SECONDS ?? 20);
const LAG_EVERY_MS = 50;
const quiet = { onLost: () => undefined, onReady: () => undefined };

interface Arrival {
  atMs: number;
  path: string;
  deliveryId: string;
}

/**
 * Limits and order of an endpoint over two workers: the rate of an endpoint with `maxPerSecond`, the lag of another
 * endpoint of the same environment beside it, and the throughput of an endpoint with the ordering `room`.
 */
export async function run() {
  const stage = await openStage();
  const receiver = fork(join(import.meta.dirname, 'receiver.js'), ['5']);
  stage.onClose(() => Promise.resolve(receiver.kill()));
  const port = await new Promise<number>((resolve) =>
    receiver.once('message', (message) => resolve((message as { port: number }).port)),
  );
  const arrivals: Arrival[] = [];
  receiver.on('message', (arrival: Arrival) => arrivals.push(arrival));
  const pool = new pg.Pool({ connectionString: stage.environment.DATABASE_URL, max: 2 });
  const producer = new JobProducer(stage.environment.REDIS_URL, quiet);
  try {
    await stage.rtc('db', 'migrate');
    const { id: projectId } = await stage.rtc('projects', 'create', '--name', 'bench');
    const { id: environmentId } = await stage.rtc('environments', 'create', '--project', projectId, '--name', 'bench');
    const masterKeys = parseMasterKeys([stage.environment.ENCRYPTION_KEYS]);
    const newEndpoint = async (path: string, limits: { ordering?: string; maxPerSecond?: number } = {}) => {
      const id = newId('webhookEndpoint');
      const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
      await pool.query(
        `WITH endpoint AS (
           INSERT INTO webhook_endpoints (id, environment_id, url, events, enabled, signing_key_version, created_at,
             updated_at, proven, slot_ms, ordering, max_per_second)
           VALUES ($1, $2, $3, '{*}', true, 1, now(), now(), true, 64, $5, $6) RETURNING id
         )
         INSERT INTO webhook_secrets (endpoint_id, version, secret_sealed, created_at) SELECT id, 1, $4, now() FROM endpoint`,
        [
          id,
          environmentId,
          `http://127.0.0.1:${port}${path}`,
          seal(masterKeys, secret, `webhook-secret:${id}:1`),
          limits.ordering ?? 'none',
          limits.maxPerSecond ?? null,
        ],
      );
      return id;
    };
    /** Writes events of one room each, in turn over `rooms` rooms, and wakes the endpoint. */
    const emit = async (endpointId: string, count: number, rooms = 1) => {
      const prefix = newId('room');
      const { rows } = await pool.query(
        `WITH event AS (
           INSERT INTO events (id, environment_id, type, room_id, sequence, body, created_at)
           SELECT callplane_typeid('evt'), $1, 'webhook.test', $4 || '-' || n % $5, n / $5 + 1, '{}', now()
           FROM generate_series(0, $3::int - 1) n RETURNING id, room_id, sequence
         )
         INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, room_id, sequence, status,
           created_at)
         SELECT callplane_typeid('dlv'), $1, $2, id, 'webhook.test', room_id, sequence, 'pending', now() FROM event
         RETURNING id, endpoint_id AS "endpointId", environment_id AS "environmentId", 64 AS "slotMs"`,
        [environmentId, endpointId, count, prefix, rooms],
      );
      await producer.wakeDeliveries(rows.slice(0, 1));
      return rows as { id: string }[];
    };
    const arrived = async (path: string, count: number) => {
      for (;;) {
        const seen = arrivals.filter((arrival) => arrival.path === path);
        if (seen.length >= count) return seen;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    for (let worker = 0; worker < 2; worker += 1) {
      const health = String(await freePort());
      await stage.run(
        'apps/webhook-worker/dist/main.js',
        {
          WEBHOOK_ALLOW_HTTP: 'true',
          WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
          HEALTH_PORT: health,
          HEALTH_HOST: '127.0.0.1',
        },
        `http://127.0.0.1:${health}/readyz`,
      );
    }
    const other = await newEndpoint('/other');
    const lagsFor = async (ms: number) => {
      const lags: number[] = [];
      const until = performance.now() + ms;
      while (performance.now() < until) {
        const startedAtMs = performance.timeOrigin + performance.now();
        const [delivery] = await emit(other, 1);
        for (;;) {
          const arrival = arrivals.findLast(({ deliveryId }) => deliveryId === delivery?.id);
          if (arrival !== undefined) {
            lags.push(arrival.atMs - startedAtMs);
            break;
          }
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
        await new Promise((resolve) => setTimeout(resolve, LAG_EVERY_MS));
      }
      return lags;
    };
    const limited = await newEndpoint('/limited', { maxPerSecond: PER_SECOND });
    await emit(limited, 20);
    await arrived('/limited', 20);
    await lagsFor(1000);
    const alone = await lagsFor(4000);
    const count = PER_SECOND * SECONDS;
    arrivals.length = 0;
    await emit(limited, count);
    const beside = await lagsFor((SECONDS - 2) * 1000);
    const times = (await arrived('/limited', count)).map(({ atMs }) => atMs).sort((a, b) => a - b);
    const rate = ((times.length - 1) / ((times.at(-1) ?? NaN) - (times[0] ?? NaN))) * 1000;
    const most = Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 1000).length));

    console.log('| what | value | goal |\n| --- | --- | --- |');
    console.log(
      `| maxPerSecond ${PER_SECOND}, two workers, ${SECONDS} s | ${rate.toFixed(1)} /s: ${(rate / PER_SECOND).toFixed(3)} | 0.95-1.05 |`,
    );
    console.log(`| the most in any second | ${most} | |`);
    console.log(`| lag of another endpoint, alone | ${inWords(alone)} | |`);
    console.log(`| the same beside the limited one | ${inWords(beside)} | |`);
    for (const [rooms, each] of [
      [1, 200],
      [50, 1500],
    ] as const) {
      const path = `/ordered${rooms}`;
      const ordered = await newEndpoint(path, { ordering: 'room' });
      const startedAtMs = performance.timeOrigin + performance.now();
      await emit(ordered, each, rooms);
      const seen = await arrived(path, each);
      const tookMs = Math.max(...seen.map(({ atMs }) => atMs)) - startedAtMs;
      console.log(`| ordering room, ${rooms} rooms, receiver 5 ms | ${((each / tookMs) * 1000).toFixed(0)} /s | |`);
    }
    const unordered = await newEndpoint('/unordered');
    const startedAtMs = performance.timeOrigin + performance.now();
    await emit(unordered, 1500, 50);
    const seen = await arrived('/unordered', 1500);
    const tookMs = Math.max(...seen.map(({ atMs }) => atMs)) - startedAtMs;
    console.log(`| no order, receiver 5 ms | ${((1500 / tookMs) * 1000).toFixed(0)} /s | |`);
  } finally {
    await producer.close();
    await pool.end();
    await stage.close();
  }
}

function inWords(lags: number[]) {
  const sorted = [...lags].sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.ceil(sorted.length * share) - 1] ?? NaN).toFixed(1);
  return `p50 ${median(lags).toFixed(1)}, p95 ${at(0.95)}, max ${at(1)} ms of ${lags.length}`;
}
