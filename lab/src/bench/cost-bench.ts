import pg from 'pg';
import { freePort } from '@callplane/local-servers';
import { JobProducer } from '@callplane/queue';
import { openMeter, type Cost } from './cost-meter.js';
import { openReceiver } from './deliveries.js';
import { openBareLoop } from './open-bare-loop.js';
import type { openStage } from './stage.js';

/** Prints the statements of each row. */
const SHOWS_STATEMENTS = process.env.BENCH_STATEMENTS === '1';
const QUIET = { onLost: () => undefined, onReady: () => undefined };

export type CostBench = Awaited<ReturnType<typeof openCostBench>>;

/** The API, its clients, and the meter of the cost benchmark. */
export async function openCostBench(stage: Awaited<ReturnType<typeof openStage>>) {
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
    startBareLoop: () => openBareLoop(stage),
    startFloor: async () => {
      const port = String(await freePort());
      const origin = `http://127.0.0.1:${port}`;
      const child = await stage.run('lab/dist/bench/floor.js', { PORT: port }, `${origin}/ready`);
      return { pid: Number(child.pid), origin };
    },
    startGateway: async () => {
      const { pid, origin } = await start('signaling', 'PORT');
      return { pid, url: `${origin.replace('http', 'ws')}/v1/signaling` };
    },
    worker: async () => (worker ??= await start('webhook-worker', 'HEALTH_PORT')),
    /** Makes `count` endpoints the only ones. They count as quick. */
    async setEndpoints(count: number, events: string[]): Promise<string[]> {
      await pool.query('DELETE FROM webhook_deliveries');
      await pool.query('UPDATE webhook_endpoints SET deleted_at = now() WHERE deleted_at IS NULL');
      const ids: string[] = [];
      for (let n = 0; n < count; n++) {
        ids.push(String((await call('/v1/webhooks', { url: `${receiver.url}/${n}`, events })).id));
      }
      await pool.query('UPDATE webhook_endpoints SET slot_ms = 64');
      return ids;
    },
    async row(name: string, nodes: readonly number[], work: () => Promise<number>) {
      printRow(name, await meter.measure(nodes, work));
      if (SHOWS_STATEMENTS) await meter.printStatements();
    },
  };
}

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
