import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { onStage, type Stage } from '../fleet/stage.js';
import { printHead, printRow } from './figures.js';
import { openReceiver, openWebhooks, type BenchReceiver } from './webhooks.js';

/**
 * The cost of each statement as the history grows, and behind a transaction that holds an old snapshot: the buffers that a
 * call touches, which do not depend on the machine. API and workers do the same work at each stage, and PostgreSQL counts.
 */
const FEW = 10_000;
const MANY = Number(process.env.GROWTH_ROWS ?? 300_000);
/** Deliveries that finish while the snapshot is held. */
const BEHIND = Number(process.env.GROWTH_BEHIND ?? 100_000);
const ROUNDS = 40;
/** Several intervals of the scans and sweeps. */
const SCANS_MS = 20_000;
/** Rarer statements belong to a start. */
const CALLS_MIN = 3;
/** The oldest row is younger than the retention. */
const OLDEST_DAYS = 20;

type Costs = Map<string, { statement: string; buffers: number; ms: number }>;

export const run = () =>
  onStage(
    async (stage) => {
      const api = stage.clientOf(await stage.start('api'));
      await stage.start('cleanup-worker');
      await stage.start('webhook-worker');
      const receiver = await openReceiver(stage);
      const { id } = await api.call('POST', '/v1/webhooks', { url: receiver.url, events: ['room.created'] });
      const endpointId = String(id);
      const connect = async () => {
        const connectionString = Object.assign(new URL(stage.postgres.adminUrl), { pathname: '/callplane' }).href;
        const client = new pg.Client({ connectionString });
        await client.connect();
        stage.onClose(() => client.end());
        return client;
      };
      const [client, holder] = [await connect(), await connect()];
      await client.query('CREATE EXTENSION pg_stat_statements');
      // Foreign keys of the rows are not checked: that would take most of the time.
      await client.query('SET session_replication_role = replica');
      const history = { environmentId: stage.tenant.environmentId, endpointId };

      const work = async () => {
        for (let round = 0; round < ROUNDS; round += 1) {
          const arrived = receiver.arrivals(1);
          const roomId = await api.newRoom();
          await arrived;
          const deliveries = `/v1/webhooks/${endpointId}/deliveries`;
          const lists = [deliveries, `${deliveries}?status=failed`, '/v1/deliveries?status=failed', '/v1/events'];
          for (const path of [...lists, `/v1/rooms/${roomId}`, `${deliveries}/dlv_${'1'.padStart(26, '0')}`])
            await api.call('GET', path);
        }
        await delay(SCANS_MS);
      };
      await finish(client, history, 1, FEW);
      await client.query('VACUUM ANALYZE');
      // The first round compiles the code and prepares the statements.
      await work();
      const few = await measure(client, work);
      await finish(client, history, FEW + 1, MANY);
      await client.query('VACUUM ANALYZE');
      const many = await measure(client, work);
      await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await holder.query('SELECT count(*) FROM projects');
      await finish(client, history, MANY + 1, MANY + BEHIND);
      await client.query('ANALYZE');
      report(few, many, await measure(client, work));
      printHead(`beside ${BEHIND} deliveries that finished behind a held snapshot`, 'value', 'goal');
      printRow('statements of apps without requests', await shareOfCore(client), '10 % of a core');
      printRow('latest attempt whose job was lost', await latestAttempt(stage, receiver, endpointId), '15 s');
    },
    ['shared_preload_libraries=pg_stat_statements'],
  );

/** Adds deliveries with their events that become due and are finished. Each hundredth one has failed. */
async function finish(
  client: pg.Client,
  { environmentId, endpointId }: { environmentId: string; endpointId: string },
  from: number,
  to: number,
) {
  const rows = `generate_series(${from}, ${to}) n,
    LATERAL (SELECT now() - n * interval '${(OLDEST_DAYS * 86_400_000) / (MANY + BEHIND)} milliseconds' AS at) t`;
  await client.query('BEGIN');
  await client.query(
    `INSERT INTO events (id, environment_id, type, body, created_at)
     SELECT 'evt_' || lpad(n::text, 26, '0'), $1, 'webhook.test', '{"filler":"' || repeat('x', 300) || '"}', at FROM ${rows}`,
    [environmentId],
  );
  await client.query(
    `INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, created_at, due_at)
     SELECT 'dlv_' || lpad(n::text, 26, '0'), $1, $2, 'evt_' || lpad(n::text, 26, '0'), 'webhook.test', 'pending', at, now()
     FROM ${rows}`,
    [environmentId, endpointId],
  );
  // The rows of open deliveries die, and a held snapshot keeps their index entries.
  await client.query(
    `UPDATE webhook_deliveries SET completed_at = created_at, run_attempts = 1, url = 'https://example.com/', secret_version = 1,
       status = CASE WHEN id LIKE '%00' THEN 'failed' ELSE 'succeeded' END,
       failure_reason = CASE WHEN id LIKE '%00' THEN 'rejected' END
     WHERE event_type = 'webhook.test' AND status = 'pending'`,
  );
  await client.query('COMMIT');
}

/** PostgreSQL's cost of the scans and sweeps of all apps. */
async function shareOfCore(client: pg.Client): Promise<string> {
  await client.query('SELECT pg_stat_statements_reset()');
  const startedAtMs = performance.now();
  await delay(3 * SCANS_MS);
  const { rows } = await client.query<{ ms: number }>(
    `SELECT sum(total_exec_time) AS ms FROM pg_stat_statements WHERE userid = 'callplane'::regrole`,
  );
  return `${(((rows[0]?.ms ?? NaN) / (performance.now() - startedAtMs)) * 100).toFixed(1)} %`;
}

async function latestAttempt(stage: Stage, receiver: BenchReceiver, endpointId: string): Promise<string> {
  const { emit } = openWebhooks(stage);
  const lags: Promise<number>[] = [];
  for (let n = 0; n < ROUNDS; n += 1) {
    const emittedAtMs = performance.timeOrigin + performance.now();
    const deliveryId = await emit(endpointId, 1, { isAnnounced: false });
    lags.push(receiver.arrivalOf(deliveryId).then((arrivedAtMs) => arrivedAtMs - emittedAtMs));
    await delay(1000);
  }
  return `${(Math.max(...(await Promise.all(lags))) / 1000).toFixed(1)} s`;
}

async function measure(client: pg.Client, work: () => Promise<void>): Promise<Costs> {
  await client.query('SELECT pg_stat_statements_reset()');
  await work();
  const { rows } = await client.query<{ id: string; statement: string; buffers: number; ms: number }>(
    `SELECT queryid::text AS id, regexp_replace(query, '\\s+', ' ', 'g') AS statement, total_exec_time / calls AS ms,
       (shared_blks_hit + shared_blks_read)::float8 / calls AS buffers
     FROM pg_stat_statements WHERE userid = 'callplane'::regrole AND calls >= $1 AND shared_blks_hit > 0
     ORDER BY total_exec_time DESC`,
    [CALLS_MIN],
  );
  return new Map(rows.map(({ id, ...cost }) => [id, cost]));
}

function report(few: Costs, many: Costs, behind: Costs) {
  printHead(
    'statement',
    ...[FEW, MANY].map((rows) => `${rows} rows: buffers · ms`),
    'ratio',
    `${BEHIND} behind`,
    'ratio',
  );
  for (const [id, { statement, ...now }] of many) {
    const [before, after] = [few.get(id), behind.get(id)];
    const text = (cost: { buffers: number; ms: number } | undefined) =>
      cost === undefined ? '' : `${cost.buffers.toFixed(0)} · ${cost.ms.toFixed(2)}`;
    const ratio = before === undefined ? '' : (now.buffers / before.buffers).toFixed(2);
    const held = after === undefined ? '' : (after.buffers / now.buffers).toFixed(2);
    printRow(`\`${statement.replaceAll('|', '').slice(0, 100)}\``, text(before), text(now), ratio, text(after), held);
  }
}
