import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import autocannon from 'autocannon';
import { cpuMs, onStage, treeOf, type Stage } from '../fleet/stage.js';
import { percentile, printHead, printRow, spread } from './figures.js';
import { openReceiver, openWebhooks } from './webhooks.js';

const ROUND = 2000;
const CONNECTIONS = [2, 32];
const PER_SECOND = 200;
const SECONDS = Number(process.env.BENCH_SECONDS ?? 20);
/** When one of two workers is killed, in seconds. */
const KILLED_AFTER = 5;

type Bench = Awaited<ReturnType<typeof openBench>>;

/**
 * Events from the API to a receiver: processor time of an event with its delivery, the time from the answer to the
 * first byte at 200 events a second, memory, and what the death of a worker delays and repeats.
 */
export const run = () =>
  onStage(async (stage) => {
    const bench = await openBench(stage);
    printHead('what', 'value', 'goal');
    for (const connections of CONNECTIONS) await accepted(bench, connections);
    const steady = await atRate(bench, () => undefined);
    printRow(`answer to first byte, ${PER_SECOND}/s`, spread(steady.lags), 'p99 60 ms');
    printRow('processor time of an event with its delivery, at that rate', `${steady.cpuUs.toFixed(0)} µs`, '');
    for (const app of ['api', 'worker', 'cleanup'] as const)
      printRow(`PSS of the ${app} after that`, `${pssMiB(bench[app].pid).toFixed(0)} MiB`, '150 MiB');
    const other = await stage.start('webhook-worker');
    const killed = await atRate(bench, () => process.kill(other.pid, 'SIGKILL'));
    const latest = `${(percentile(killed.lags, 1) / 1000).toFixed(1)} s; ${killed.repeated} sent twice`;
    printRow(`one of two workers killed, ${PER_SECOND}/s: the latest first byte`, latest, '25 s; 4');
  });

async function openBench(stage: Stage) {
  const webhooks = openWebhooks(stage);
  const receiver = await openReceiver(stage);
  const api = await stage.start('api');
  const cleanup = await stage.start('cleanup-worker');
  const worker = await stage.start('webhook-worker');
  const client = stage.clientOf(api);
  await client.call('POST', '/v1/webhooks', { url: receiver.url, events: ['room.created'] });
  const apps = [api, cleanup, worker];
  return {
    receiver,
    api,
    cleanup,
    worker,
    client,
    /** Of the apps and their servers. */
    cpuMs: () =>
      [...apps, stage.postgres, stage.redis].flatMap(({ pid }) => treeOf(pid)).reduce((a, b) => a + cpuMs(b), 0),
    /** Resolves once nothing is open. */
    async atRest() {
      for (;;) {
        const sql = `SELECT 1 FROM webhook_deliveries WHERE status IN ('pending', 'delivering') LIMIT 1`;
        if ((await webhooks.pool.query(sql)).rowCount === 0) return;
        await delay(50);
      }
    },
    async deliveries() {
      const { rows } = await webhooks.pool.query<{ id: string; room: string }>(
        'SELECT id, room_id AS room FROM webhook_deliveries',
      );
      return new Map(rows.map(({ id, room }) => [room, id]));
    },
  };
}

/** Creates rooms as fast as some connections can, and waits for their deliveries. */
async function accepted({ api, client, cpuMs: cpu, atRest }: Bench, connections: number) {
  const body = JSON.stringify({ name: 'Bench' });
  const request = {
    url: `${api.origin}/v1/rooms`,
    method: 'POST' as const,
    headers: client.headers,
    body,
    connections,
  };
  await autocannon({ ...request, amount: ROUND / 4 });
  await atRest();
  const before = cpu();
  const { non2xx, errors } = await autocannon({ ...request, amount: ROUND });
  if (non2xx + errors > 0) throw new Error(`${non2xx} not 2xx, ${errors} errors`);
  await atRest();
  const cpuUs = ((cpu() - before) * 1000) / ROUND;
  const goal = connections > 2 ? '2000 µs' : '3400 µs';
  printRow(`processor time of an event with its delivery, ${connections} connections`, `${cpuUs.toFixed(0)} µs`, goal);
}

/** Creates rooms at an even rate. @param disturb what happens after some seconds. */
async function atRate({ client, receiver, cpuMs: cpu, atRest, deliveries }: Bench, disturb: () => void) {
  const answeredMs = new Map<string, number>();
  const requests: Promise<unknown>[] = [];
  const [before, startedMs] = [cpu(), performance.now()];
  setTimeout(disturb, KILLED_AFTER * 1000);
  for (let n = 0; n < PER_SECOND * SECONDS; n++) {
    const request = client.newRoom();
    requests.push(request.then((room) => answeredMs.set(room, performance.timeOrigin + performance.now())));
    await delay(Math.max(0, startedMs + ((n + 1) * 1000) / PER_SECOND - performance.now()));
  }
  await Promise.all(requests);
  await atRest();
  const cpuUs = ((cpu() - before) * 1000) / requests.length;
  const ids = await deliveries();
  const lags: number[] = [];
  let repeated = 0;
  for (const [room, atMs] of answeredMs) {
    const arrivals = receiver.arrivalsOf(String(ids.get(room)));
    lags.push((arrivals[0] ?? NaN) - atMs);
    repeated += arrivals.length - 1;
  }
  return { lags, repeated, cpuUs };
}

/** The memory of a process, with its share of what it has in common with others. */
function pssMiB(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1024;
}
