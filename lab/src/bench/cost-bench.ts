import type { Stage, Started } from '../fleet/stage.js';
import { openMeter, type Cost } from './cost-meter.js';
import { printRow } from './figures.js';
import { openReceiver, openWebhooks } from './webhooks.js';

/** Prints the statements of each row. */
const SHOWS_STATEMENTS = process.env.BENCH_STATEMENTS === '1';

export type CostBench = Awaited<ReturnType<typeof openCostBench>>;

/** The API, its clients, and the meter of the cost benchmark. */
export async function openCostBench(stage: Stage) {
  const api = await stage.start('api');
  const client = stage.clientOf(api);
  const receiver = await openReceiver(stage);
  const meter = await openMeter(stage);
  stage.onClose(() => meter.close());
  const webhooks = openWebhooks(stage);
  const { pool } = webhooks;
  let worker: Started | null = null;
  return {
    stage,
    api,
    client,
    webhooks,
    receiver,
    worker: async () => (worker ??= await stage.start('webhook-worker')),
    /** Makes `count` endpoints the only ones. They count as quick. */
    async setEndpoints(count: number, events: string[]): Promise<string[]> {
      await pool.query('DELETE FROM webhook_deliveries');
      await pool.query('UPDATE webhook_endpoints SET deleted_at = now() WHERE deleted_at IS NULL');
      const ids: string[] = [];
      for (let n = 0; n < count; n++) {
        ids.push(String((await client.call('POST', '/v1/webhooks', { url: `${receiver.url}/${n}`, events }))['id']));
      }
      await pool.query('UPDATE webhook_endpoints SET slot_ms = 64');
      return ids;
    },
    async row(name: string, nodes: readonly number[], work: () => Promise<number>) {
      print(name, await meter.measure(nodes, work));
      if (SHOWS_STATEMENTS) await meter.printStatements();
    },
  };
}

function print(name: string, cost: Cost) {
  printRow(
    name,
    cost.statements.toFixed(2),
    cost.transactions.toFixed(2),
    cost.postgresUs.toFixed(0),
    cost.nodeUs.toFixed(0),
    cost.redisCommands.toFixed(2),
    cost.redisUs.toFixed(0),
    `${cost.operations}, ${cost.load.toFixed(1)}`,
  );
}
