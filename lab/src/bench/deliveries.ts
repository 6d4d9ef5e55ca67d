import { setTimeout as delay } from 'node:timers/promises';
import { cpuMsOf, onStage, type Stage } from '../fleet/stage.js';
import { median, printHead, printRow, ratioOf } from './figures.js';
import { openBareLoop, openReceiver, openWebhooks, type Arrival, type BenchReceiver } from './webhooks.js';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
/** Deliveries of a round against the bare loop. */
const ROUND = 1500;
/** Before the first round: V8 compiles during the first thousands. */
const WARM_UP = 4000;
/** The worker tries a Redis that was frozen every 5 s. */
const THAW_MS = 6000;
const ENDPOINTS = 20;
const BACKLOG = 4000;
const SLOW_MS = 50;
const WORKERS = [1, 2, 4, 8];
/** For each worker, at the slow receiver. */
const SLOW_ROUND = 300;

interface Target {
  endpointId: string | string[];
  receiver: BenchReceiver;
}
type Bench = Awaited<ReturnType<typeof openBench>>;

/** Webhook deliveries: one worker against a bare loop, and several workers against one. */
export const run = () =>
  onStage(
    async (stage) => {
      const bench = await openBench(stage);
      printHead('what', 'value', 'goal');
      await againstBareLoop(bench);
      await overEndpoints(bench);
      await severalWorkers(bench);
      // Eight workers hold more connections than PostgreSQL allows by default.
    },
    ['max_connections=300'],
  );

async function openBench(stage: Stage) {
  const webhooks = openWebhooks(stage);
  const target = async (waitMs: number): Promise<Target> => {
    const receiver = await openReceiver(stage, waitMs);
    return { receiver, endpointId: await webhooks.newEndpoint(receiver.url) };
  };
  const [fast, slow] = [await target(0), await target(SLOW_MS)];
  const workers = [await stage.start('webhook-worker')];
  return {
    stage,
    webhooks,
    fast,
    slow,
    workers,
    /** Lets `count` processes of the webhook worker run. */
    async setWorkers(count: number) {
      while (workers.length < count) workers.push(await stage.start('webhook-worker'));
      for (const worker of workers.splice(count)) await worker.stop();
    },
    /** One process with `count` workers, beside no other. */
    async setWorkersOfOne(count: number) {
      for (const worker of workers.splice(0)) await worker.stop();
      workers.push(await stage.start('webhook-worker', { WORKERS_PER_PROCESS: String(count) }));
    },
    /** Inserts pending deliveries and resolves to the number of arrivals per second. */
    async deliver({ endpointId, receiver }: Target, count: number, isAnnounced = true): Promise<number> {
      const arrived = receiver.arrivals(count);
      await webhooks.emit(endpointId, count, { isAnnounced });
      return rateOf(await arrived);
    },
  };
}

async function againstBareLoop({ stage, webhooks, fast, deliver }: Bench) {
  const loop = await openBareLoop(stage);
  await deliver(fast, WARM_UP);
  await loop.send(fast.receiver, WARM_UP);
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    const floor = rateOf(await loop.send(fast.receiver, ROUND));
    rounds.push({ floor, own: await deliver(fast, ROUND) });
  }
  const own = median(rounds.map((round) => round.own));
  const floor = median(rounds.map((round) => round.floor));
  const ratio = ratioOf(rounds.map((round) => round.own / round.floor));
  printRow(
    'one worker, receiver 0 ms, against the bare loop',
    `${own.toFixed(0)} of ${floor.toFixed(0)} /s: ${ratio}`,
    0.5,
  );
  const many: Target = { receiver: fast.receiver, endpointId: [] };
  for (let n = 0; n < 100; n++)
    many.endpointId = [many.endpointId, await webhooks.newEndpoint(fast.receiver.url)].flat();
  const ratios = [];
  for (let round = 0; round < ROUNDS; round++) {
    const bare = rateOf(await loop.send(fast.receiver, ROUND));
    ratios.push((await deliver(many, ROUND)) / bare);
  }
  printRow('the same over 100 endpoints', ratioOf(ratios), 0.9);
  await webhooks.pool.query('UPDATE webhook_endpoints SET deleted_at = now() WHERE id = ANY($1)', [many.endpointId]);
  process.kill(stage.redis.pid, 'SIGSTOP');
  const frozen = [];
  for (let round = 0; round < ROUNDS; round++) frozen.push(await deliver(fast, ROUND, false));
  process.kill(stage.redis.pid, 'SIGCONT');
  await delay(THAW_MS);
  const without = `${median(frozen).toFixed(0)} of ${own.toFixed(0)} /s: ${(median(frozen) / own).toFixed(2)}`;
  printRow('one worker, receiver 0 ms, Redis frozen, against the same with Redis', without, 0.5);
}

/** Deliveries over 20 endpoints of one receiver: their rate, and what one costs until its outcome is written. */
async function overEndpoints({ stage, webhooks, fast, deliver, workers }: Bench) {
  const endpointId: string[] = [];
  for (let n = 0; n < ENDPOINTS; n++) endpointId.push(await webhooks.newEndpoint(fast.receiver.url));
  const rates = [];
  for (let round = 0; round < ROUNDS; round++) {
    rates.push(await deliver({ receiver: fast.receiver, endpointId }, 2 * BACKLOG));
    await webhooks.atRest();
  }
  printRow(`one worker, receiver 0 ms, ${ENDPOINTS} endpoints`, `${median(rates).toFixed(0)} /s`, '2500 /s');
  const costs = [];
  for (let round = 0; round < ROUNDS; round++) {
    const processes = [...workers, stage.postgres, stage.redis];
    const before = cpuMsOf(processes);
    await webhooks.emit(endpointId, BACKLOG);
    await webhooks.atRest();
    costs.push(((cpuMsOf(processes) - before) * 1000) / BACKLOG);
  }
  printRow(`processor time of a delivery of ${BACKLOG} over them`, `${median(costs).toFixed(0)} µs`, '750 µs');
}

async function severalWorkers({ fast, slow, setWorkers, setWorkersOfOne, deliver }: Bench) {
  const rateOfRounds = async (workers: number) => {
    const rates = [];
    for (let round = 0; round < 3; round++) rates.push(await deliver(slow, workers * SLOW_ROUND));
    return median(rates);
  };
  const rates: number[] = [];
  for (const workers of WORKERS) {
    await setWorkers(workers);
    rates.push(await rateOfRounds(workers));
  }
  const [one = NaN, two = NaN, four = NaN, eight = NaN] = rates;
  const against = (rate: number, other: number) => `${rate.toFixed(1)} /s: ${(rate / other).toFixed(2)}`;
  printRow('one worker, receiver 50 ms, against 80 /s', against(one, 80), 0.95);
  printRow('two workers against one, 50 ms', against(two, one), 1.8);
  printRow('four workers against one, 50 ms', against(four, one), 3.4);
  printRow('eight workers against one, 50 ms', against(eight, one), '');
  await setWorkersOfOne(8);
  printRow('eight workers of one process against one, 50 ms', against(await rateOfRounds(8), one), '');
  const ofOne = [];
  for (let round = 0; round < 3; round++) ofOne.push(await deliver(fast, 8 * SLOW_ROUND));
  printRow('the same, receiver 0 ms', `${median(ofOne).toFixed(0)} /s`);
}

function rateOf(arrivals: readonly Arrival[]) {
  const [first] = arrivals;
  const last = arrivals.at(-1);
  if (first === undefined || last === undefined) return NaN;
  return ((arrivals.length - 1) / (last.atMs - first.atMs)) * 1000;
}
