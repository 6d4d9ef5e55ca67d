import autocannon, { type Options } from 'autocannon';
import pg from 'pg';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '@callplane/local-servers';
import { JobProducer } from '@callplane/queue';
import { METER_SETTINGS, openMeter, type Cost } from './cost-meter.js';
import { openReceiver } from './deliveries.js';
import { each, openClient } from './signaling-client.js';
import { openStage } from './stage.js';

const SECONDS = Number(process.env.BENCH_SECONDS ?? 6);
const CONNECTIONS = Number(process.env.BENCH_CONNECTIONS ?? 32);
const JOINS = 200;
const PEAK = 6_000;
/** Prints the statements of each row. */
const SHOWS_STATEMENTS = process.env.BENCH_STATEMENTS === '1';
const QUIET = { onLost: () => undefined, onReady: () => undefined };

/**
 * What one operation costs: statements, CPU time and commands of Redis. The rows are independent of the speed of the
 * machine as far as a slow machine does not make batches larger. `BENCH_ROWS=rooms,peak` measures some rows only.
 */
export async function run() {
  const stage = await openStage({ postgresSettings: METER_SETTINGS });
  try {
    const bench = await openCostBench(stage);
    console.log(
      '| operation | statements | transactions | PostgreSQL µs | Node µs | Redis commands | Redis µs | operations, load |',
    );
    console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
    const rows = process.env.BENCH_ROWS?.split(',');
    for (const [name, row] of Object.entries(ROWS)) {
      if (rows === undefined || rows.includes(name)) await row(bench);
    }
  } finally {
    await stage.close();
  }
}

/** In this order: the webhook worker starts with the first row of deliveries. */
const ROWS: Record<string, (bench: CostBench) => Promise<void>> = {
  rooms: roomsAndReads,
  joins,
  peak: deliveriesAtPeak,
  steady: deliveriesAtARate,
};

type CostBench = Awaited<ReturnType<typeof openCostBench>>;

async function openCostBench(stage: Awaited<ReturnType<typeof openStage>>) {
  await stage.rtc('db', 'migrate');
  const { id: project } = await stage.rtc('projects', 'create', '--name', 'bench');
  const { id: environment } = await stage.rtc('environments', 'create', '--project', project, '--name', 'bench');
  const { key } = await stage.rtc('keys', 'create', '--env', environment, '--type', 'secret');
  const settings = {
    WEBHOOK_ALLOW_HTTP: 'true',
    WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
    HOST: '127.0.0.1',
    HEALTH_HOST: '127.0.0.1',
    // Otherwise the benchmark would measure the rate limits.
    RATE_LIMIT_SIGNALING_PER_SECOND: '0',
    // For example a `--require` that starts a profiler.
    NODE_OPTIONS: process.env.BENCH_NODE_OPTIONS ?? '',
  };
  const start = async (app: string, portName: string) => {
    const port = String(await freePort());
    const origin = `http://127.0.0.1:${port}`;
    const child = await stage.run(`apps/${app}/dist/main.js`, { ...settings, [portName]: port }, `${origin}/readyz`);
    return { pid: Number(child.pid), origin };
  };
  const api = await start('api', 'PORT');
  const receiver = await openReceiver(0);
  stage.onClose(() => Promise.resolve(receiver.close()));
  const meter = await openMeter(stage);
  stage.onClose(() => meter.close());
  const pool = new pg.Pool({ connectionString: stage.environment.DATABASE_URL, max: 1 });
  stage.onClose(() => pool.end());
  const producer = new JobProducer(stage.environment.REDIS_URL, QUIET);
  stage.onClose(() => producer.close());
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const call = async (path: string, body: object) => {
    const response = await fetch(`${api.origin}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${text}`);
    return JSON.parse(text);
  };
  let worker: { pid: number } | null = null;
  return {
    api,
    environment: String(environment),
    headers,
    meter,
    pool,
    producer,
    receiver,
    call,
    newRoom: async () => String((await call('/v1/rooms', { name: 'bench', maxParticipants: 1_000 })).id),
    startGateway: async () => {
      const { pid, origin } = await start('signaling', 'PORT');
      return { pid, url: `${origin.replace('http', 'ws')}/v1/signaling` };
    },
    worker: async () => (worker ??= await start('webhook-worker', 'HEALTH_PORT')),
    /** Makes `count` endpoints the only ones. They are proven: unproven endpoints share two slots. */
    async setEndpoints(count: number, events: string[]): Promise<string[]> {
      await pool.query('DELETE FROM webhook_deliveries');
      await pool.query('UPDATE webhook_endpoints SET deleted_at = now() WHERE deleted_at IS NULL');
      const ids: string[] = [];
      for (let n = 0; n < count; n++) {
        ids.push(String((await call('/v1/webhooks', { url: `${receiver.url}/${n}`, events })).id));
      }
      await pool.query('UPDATE webhook_endpoints SET proven = true');
      return ids;
    },
    async row(name: string, nodes: readonly number[], work: () => Promise<number>) {
      printRow(name, await meter.measure(nodes, work));
      if (SHOWS_STATEMENTS) await meter.printStatements();
    },
  };
}

async function roomsAndReads(bench: CostBench) {
  const { api, headers, row } = bench;
  const room = await bench.newRoom();
  const rooms = { url: `${api.origin}/v1/rooms`, method: 'POST', headers, body: '{"name":"bench"}' } as const;
  const routes: [string, Options, endpoints: number][] = [
    ['`POST /v1/rooms`, no endpoint', rooms, 0],
    ['`POST …/tokens`', { ...rooms, url: `${rooms.url}/${room}/tokens`, body: '{"participantName":"bench"}' }, 0],
    ['`GET /v1/rooms/{id}`', { url: `${rooms.url}/${room}`, headers }, 0],
    ['`POST /v1/rooms`, 10 endpoints', rooms, 10],
  ];
  for (const [name, options, endpoints] of routes) {
    await bench.setEndpoints(endpoints, ['room.created']);
    for (const connections of new Set([CONNECTIONS, 2])) {
      await send(options, connections, 2);
      await row(`${name}, ${connections} connections`, [api.pid], () => send(options, connections, SECONDS));
    }
  }
}

async function send(options: Options, connections: number, seconds: number): Promise<number> {
  const result = await autocannon({ ...options, connections, duration: seconds });
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${options.url}: ${result.non2xx} not 2xx`);
  return result.requests.total;
}

/** One after another, each of a participant of its own, in rooms of ten. */
async function joins(bench: CostBench) {
  const gateway = await bench.startGateway();
  await bench.setEndpoints(10, ['*']);
  const rooms = await each(Array.from({ length: JOINS / 10 }), 4, () => bench.newRoom());
  const ticketsOf = async (count: number) =>
    each(Array.from({ length: count }), 4, async (_, n) => {
      const path = `/v1/rooms/${rooms[n % rooms.length]}/tokens`;
      return String((await bench.call(path, { participantName: 'bench' })).token);
    });
  const open: Awaited<ReturnType<typeof openClient>>[] = [];
  const join = async (token: string) => {
    const client = await openClient(gateway.url, 'callplane.v2');
    open.push(client);
    await client.join(token);
  };
  // The first ones compile the code and prepare the statements.
  for (const ticket of await ticketsOf(40)) await join(ticket);
  const tickets = await ticketsOf(JOINS);
  await bench.row('join, 10 endpoints, one after another', [gateway.pid], async () => {
    for (const ticket of tickets) await join(ticket);
    return JOINS;
  });
  for (const client of open) client.close();
}

/** The deliveries wait in PostgreSQL when the measurement begins: their own creation does not count. */
async function deliveriesAtPeak(bench: CostBench) {
  const worker = await bench.worker();
  const [endpoint = ''] = await bench.setEndpoints(1, ['webhook.test']);
  const deliver = async (count: number) => {
    const { meter: _, pool, producer, receiver } = bench;
    const arrived = receiver.arrivals(count);
    await pool.query('UPDATE webhook_endpoints SET enabled = true WHERE id = $1', [endpoint]);
    await producer.wakeDeliveries([{ id: '', endpointId: endpoint }]);
    await arrived;
    return count;
  };
  for (const count of [600, PEAK]) {
    await bench.pool.query('UPDATE webhook_endpoints SET enabled = false WHERE id = $1', [endpoint]);
    await bench.pool.query(INSERT_DELIVERIES, [bench.environment, endpoint, count]);
    if (count === PEAK) await bench.row('delivery at peak load', [worker.pid], () => deliver(count));
    else await deliver(count);
    await settled(bench);
  }
}

/** Includes what PostgreSQL does for the room. Node's time is that of the worker alone. */
async function deliveriesAtARate(bench: CostBench) {
  const worker = await bench.worker();
  await bench.setEndpoints(1, ['room.created']);
  await atRate(bench, 50, 100);
  for (const [perSecond, count] of [
    [200, 2_000],
    [20, 300],
  ] as const) {
    await bench.row(`room and its delivery, ${perSecond} /s`, [worker.pid], () => atRate(bench, perSecond, count));
    await settled(bench);
  }
}

/** Creates rooms at a rate, and waits for their deliveries. */
async function atRate({ call, receiver }: CostBench, perSecond: number, count: number) {
  const arrived = receiver.arrivals(count);
  const startedAt = performance.now();
  const answers: Promise<unknown>[] = [];
  for (let n = 0; n < count; n++) {
    const waitMs = startedAt + (n * 1000) / perSecond - performance.now();
    if (waitMs > 0) await delay(waitMs);
    answers.push(call('/v1/rooms', { name: 'bench' }));
  }
  await Promise.all(answers);
  await arrived;
  return count;
}

async function settled({ pool }: CostBench) {
  for (;;) {
    const { rows } = await pool.query(
      `SELECT 1 FROM webhook_deliveries WHERE status IN ('pending', 'delivering') LIMIT 1`,
    );
    if (rows.length === 0) return;
    await delay(100);
  }
}

const INSERT_DELIVERIES = `
  WITH event AS (
    INSERT INTO events (id, environment_id, type, body, created_at)
    SELECT callplane_typeid('evt'), $1, 'webhook.test', '{"id":"bench","data":{"text":"' || repeat('x', 500) || '"}}', now()
    FROM generate_series(1, $3) RETURNING id
  )
  INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, created_at)
  SELECT callplane_typeid('dlv'), $1, $2, id, 'webhook.test', 'pending', now() FROM event`;

function printRow(name: string, cost: Cost) {
  const cells = [
    name,
    cost.statements.toFixed(2),
    cost.transactions.toFixed(2),
    cost.postgresUs.toFixed(0),
    cost.nodeUs.toFixed(0),
    cost.redisCommands.toFixed(2),
    cost.redisUs.toFixed(0),
    `${cost.operations}, ${cost.load.toFixed(1)}`,
  ];
  console.log(`| ${cells.join(' | ')} |`);
}
