import { setTimeout as delay } from 'node:timers/promises';
import type { CostBench } from './cost-bench.js';

/** Deliveries of a measurement at peak load. */
export const PEAK = 6_000;
const IDLE_SECONDS = 10;

/** The deliveries wait in PostgreSQL when the measurement begins: their own creation does not count. */
export async function deliveriesAtPeak(bench: CostBench) {
  const worker = await bench.worker();
  const [endpoint = ''] = await bench.setEndpoints(1, ['webhook.test']);
  const deliver = async (count: number) => {
    const { webhooks, receiver } = bench;
    const arrived = receiver.arrivals(count);
    await webhooks.pool.query('UPDATE webhook_endpoints SET enabled = true WHERE id = $1', [endpoint]);
    await webhooks.producer.wakeDeliveries([
      { endpointId: endpoint, environmentId: bench.stage.tenant.environmentId, slotMs: 64 },
    ]);
    await arrived;
    return count;
  };
  for (const count of [600, PEAK]) {
    await bench.webhooks.pool.query('UPDATE webhook_endpoints SET enabled = false WHERE id = $1', [endpoint]);
    await bench.webhooks.emit(endpoint, count, { isAnnounced: false });
    if (count === PEAK) await bench.row('delivery at peak load', [worker.pid], () => deliver(count));
    else await deliver(count);
    await settled(bench);
  }
}

/** Includes what PostgreSQL does for the room. Node's time is that of the worker alone. */
export async function deliveriesAtARate(bench: CostBench) {
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

/** What the API and the webhook worker cost while nothing happens: per second, in place of per operation. */
export async function nothingToDo(bench: CostBench) {
  const worker = await bench.worker();
  await delay(3_000);
  await bench.row('nothing to do, a second', [worker.pid, bench.api.pid], async () => {
    await delay(IDLE_SECONDS * 1000);
    return IDLE_SECONDS;
  });
}

/** Creates rooms at a rate, and waits for their deliveries. */
async function atRate({ client, receiver }: CostBench, perSecond: number, count: number) {
  const arrived = receiver.arrivals(count);
  const startedAt = performance.now();
  const answers: Promise<unknown>[] = [];
  for (let n = 0; n < count; n++) {
    const waitMs = startedAt + (n * 1000) / perSecond - performance.now();
    if (waitMs > 0) await delay(waitMs);
    answers.push(client.newRoom());
  }
  await Promise.all(answers);
  await arrived;
  return count;
}

async function settled({ webhooks }: CostBench) {
  for (;;) {
    const { rows } = await webhooks.pool.query(
      `SELECT 1 FROM webhook_deliveries WHERE status IN ('pending', 'delivering') LIMIT 1`,
    );
    if (rows.length === 0) return;
    await delay(100);
  }
}
