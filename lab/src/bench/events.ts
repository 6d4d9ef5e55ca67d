import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import autocannon from 'autocannon';
import { cpuMsOf, onStage, type Stage } from '../fleet/stage.js';
import { percentile, printHead, printRow, spread } from './figures.js';
import { openReceiver, openWebhooks } from './webhooks.js';

const BACKLOG = 10_000;
const ROUND = 4000;
const FEW_CONNECTIONS = 2;
const CONNECTIONS = 32;
const QUIET_PER_SECOND = 10;
const PER_SECOND = 200;
const SECONDS = Number(process.env.BENCH_SECONDS ?? 20);
/** When one of two workers is killed, in seconds. */
const KILLED_AFTER = 5;

type Bench = Awaited<ReturnType<typeof openBench>>;

/**
 * Events from the API to a receiver: processor time of a delivery of a backlog, and of an event with its delivery; the
 * time from the answer to the first byte at 10 and 200 events a second; memory; and the deliveries that the death of a
 * worker delays and repeats.
 */
export const run = () =>
  onStage(async (stage) => {
    const bench = await openBench(stage);
    printHead('what', 'value', 'goal');
    const backlogUs = await backlog(bench);
    printRow(`processor time of a delivery of a backlog of ${BACKLOG}`, `${backlogUs.toFixed(0)} µs`, '1250 µs');
    for (const [connections, goal] of [
      [FEW_CONNECTIONS, '3400 µs'],
      [CONNECTIONS, '2000 µs'],
    ] as const) {
      // Another number of callers runs other code, which V8 has to compile first.
      await accepted(bench, connections);
      const cpuUs = await accepted(bench, connections);
      printRow(`an event with its delivery, ${connections} connections`, `${cpuUs.toFixed(0)} µs`, goal);
    }
    const quiet = await atRate(bench, QUIET_PER_SECOND);
    printRow(`answer to first byte, ${QUIET_PER_SECOND}/s`, spread(quiet.lags), '3 ms, p99 10 ms');
    const steady = await atRate(bench, PER_SECOND);
    printRow(`the same, ${PER_SECOND}/s`, spread(steady.lags), 'p99 60 ms');
    printRow('processor time of an event with its delivery, at that rate', `${steady.cpuUs.toFixed(0)} µs`, '');
    for (const app of ['api', 'worker', 'cleanup'] as const)
      printRow(`PSS of the ${app} after that`, `${pssMiB(bench[app].pid).toFixed(0)} MiB`, '150 MiB');
    const other = await stage.start('webhook-worker');
    const killed = await atRate(bench, PER_SECOND, () => process.kill(other.pid, 'SIGKILL'));
    const latest = `${(percentile(killed.lags, 1) / 1000).toFixed(1)} s; ${killed.repeated} sent twice`;
    printRow(`one of two workers killed, ${PER_SECOND}/s: the latest first byte`, latest, '25 s; 4');
  });

async function openBench(stage: Stage) {
  const webhooks = openWebhooks(stage);
  const receiver = await openReceiver(stage);
  const api = await stage.start('api');
  const cleanup = await stage.start('cleanup-worker');
  const worker = await stage.start('webhook-worker');
  // It sleeps until its backlog is there.
  process.kill(worker.pid, 'SIGSTOP');
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
    cpuMs: () => cpuMsOf([...apps, stage.postgres, stage.redis]),
    atRest: () => webhooks.atRest(),
    async deliveries() {
      const { rows } = await webhooks.pool.query<{ id: string; room: string }>(
        'SELECT id, room_id AS room FROM webhook_deliveries',
      );
      return new Map(rows.map(({ id, room }) => [room, id]));
    },
  };
}

/** Creates rooms as fast as some connections can. */
async function createRooms({ api, client }: Bench, connections: number, amount: number) {
  const { non2xx, errors } = await autocannon({
    url: `${api.origin}/v1/rooms`,
    method: 'POST',
    headers: client.headers,
    body: JSON.stringify({ name: 'Bench' }),
    connections,
    amount,
  });
  if (non2xx + errors > 0) throw new Error(`${non2xx} not 2xx, ${errors} errors`);
}

/** @returns the processor time of a worker for each delivery of a backlog, in microseconds. */
async function backlog(bench: Bench): Promise<number> {
  await createRooms(bench, CONNECTIONS, BACKLOG);
  const before = bench.cpuMs();
  process.kill(bench.worker.pid, 'SIGCONT');
  await bench.atRest();
  return ((bench.cpuMs() - before) * 1000) / BACKLOG;
}

/** @returns the processor time of an event with its delivery, in microseconds. */
async function accepted(bench: Bench, connections: number): Promise<number> {
  const before = bench.cpuMs();
  await createRooms(bench, connections, ROUND);
  await bench.atRest();
  return ((bench.cpuMs() - before) * 1000) / ROUND;
}

/** Creates rooms at an even rate. @param disturb is called after some seconds. */
async function atRate(bench: Bench, perSecond: number, disturb: () => void = () => undefined) {
  const { client, receiver, cpuMs: cpu, atRest, deliveries } = bench;
  const answeredMs = new Map<string, number>();
  const requests: Promise<unknown>[] = [];
  const [before, startedMs] = [cpu(), performance.now()];
  setTimeout(disturb, KILLED_AFTER * 1000);
  for (let n = 0; n < perSecond * SECONDS; n++) {
    const request = client.newRoom();
    requests.push(request.then((room) => answeredMs.set(room, performance.timeOrigin + performance.now())));
    await delay(Math.max(0, startedMs + ((n + 1) * 1000) / perSecond - performance.now()));
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

/** The memory of a process, with its share of common pages. */
function pssMiB(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1024;
}
