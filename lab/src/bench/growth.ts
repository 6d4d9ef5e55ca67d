import { randomUUID } from 'node:crypto';
import { claimDeliveries, Database, moveDueFloor, Prisma } from '@callplane/db';
import pg from 'pg';
import { openStage } from '../fleet/stage.js';
import { median, printHead, printRow } from './figures.js';
import { finishBehindSnapshot, grow } from './growth-rows.js';
import { growthStatements, type Statement } from './growth-statements.js';
import { growthTables } from './growth-tables.js';

/**
 * The cost of the frequent statements and the sweeps as the tables grow, and while a transaction holds an old snapshot:
 * the time in PostgreSQL and the buffers that it touches, which do not depend on the machine. SQL generates the rows.
 * Each statement runs in a transaction that is rolled back.
 */
const FEW = 10_000;
const MANY = Number(process.env.GROWTH_ROWS ?? 1_000_000);
/** Deliveries that finish while the snapshot is held. */
const BEHIND = Number(process.env.GROWTH_BEHIND ?? 300_000);
const ROUNDS = 15;
/** A statement that takes longer than an app allows appears in the report, and does not end the run. */
const DEADLINES = { connectMs: 3000, statementMs: 600_000, transactionMs: 600_000 };
/** Above this ratio, the report shows the plan. */
const GROWTH_MAX = 1.5;

interface Cost {
  ms: number;
  buffers: number;
}

interface Measured extends Cost {
  plan: string;
}

type Figures = [title: string, measured: Map<string, Measured>];

type StatementParts = [run: Statement[1], prepare?: Statement[2]];

interface Bench {
  client: pg.Client;
  database: Database;
  tenant: { projectId: string; environmentId: string };
}

export async function run() {
  const stage = await openStage();
  try {
    const { tenant } = stage;
    const connect = async () => {
      const client = new pg.Client({ connectionString: stage.environment.DATABASE_URL });
      await client.connect();
      await client.query('SET synchronous_commit = off');
      stage.onClose(() => client.end());
      return client;
    };
    await allowUncheckedRows(stage.postgres.adminUrl);
    const client = await connect();
    const database = new Database({ url: stage.environment.DATABASE_URL, poolMax: 2, deadlines: DEADLINES });
    stage.onClose(() => database.close());
    const bench = { client, database, tenant };
    const tables = growthTables(stage.operator);
    await grow(client, tenant.environmentId, 0, FEW);
    await tables.read('few rows');
    const few = await measure(bench);
    await grow(client, tenant.environmentId, FEW, MANY);
    await tables.read('many rows');
    const many = await measure(bench);
    // Before the next stage, so that its failure does not lose these figures.
    report([`${count(FEW)} rows`, few], [`${count(MANY)} rows`, many]);
    const isSlower = ([name, { buffers }]: [string, Measured]) => buffers > GROWTH_MAX * few.get(name)!.buffers;
    showPlans(
      `Plans with ${count(MANY)} deliveries of statements above ${GROWTH_MAX} times`,
      [...many].filter(isSlower),
    );
    const holder = await connect();
    await finishBehindSnapshot(client, holder, tenant.environmentId, BEHIND);
    await tables.read('held snapshot');
    const behind = await measure(bench);
    await holder.query('ROLLBACK');
    await client.query('VACUUM ANALYZE');
    await tables.read('snapshot released, vacuumed');
    report([`${count(MANY)} rows`, many], [`a snapshot with ${count(BEHIND)} finished behind it`, behind]);
    showPlans(`Plans with ${count(MANY)} deliveries and a held snapshot`, behind);
    tables.report();
  } finally {
    await stage.close();
  }
}

/** Lets the role of the app load rows without checks of foreign keys. */
async function allowUncheckedRows(adminUrl: string) {
  const admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
  await admin.query('GRANT SET ON PARAMETER session_replication_role TO PUBLIC');
  await admin.end();
}

const count = (rows: number) => rows.toLocaleString('en');

function report([first, before]: Figures, [second, after]: Figures) {
  const cost = ({ buffers, ms }: Cost) => `${count(buffers)} · ${ms.toFixed(2)}`;
  console.log();
  printHead('buffers · ms', first, second, 'ratio');
  for (const [name, now] of after) {
    const earlier = before.get(name)!;
    const ratio = (now.buffers / Math.max(1, earlier.buffers)).toFixed(2);
    printRow(name, cost(earlier), cost(now), ratio);
  }
}

function showPlans(title: string, plans: Iterable<[string, Measured]>) {
  console.log(`\n${title}:\n`);
  for (const [name, { plan }] of plans) console.log(`### ${name}\n\n\`\`\`\n${plan}\n\`\`\`\n`);
}

async function measure({ client, database, tenant }: Bench): Promise<Map<string, Measured>> {
  await moveDueFloor(database, 'operations', { checkEveryMs: 0 });
  const statements = await growthStatements(client, tenant);
  const measured = new Map<string, Measured>();
  for (const [name, run, prepare] of statements) measured.set(name, await cost(client, run, prepare));
  const endpointId = `whep_${'0'.repeat(26)}`;
  // In order: all deliveries of the endpoint are of one room, so only the first one may be claimed.
  await client.query(`UPDATE webhook_endpoints SET ordering = 'room' WHERE id = $1`, [endpointId]);
  const inOrder = (db: any) =>
    claimDeliveries(
      { claimsDatabase: { sql: db }, database: { sqlTransaction: (work) => work(db) } },
      { endpointId, lane: 'slow', token: randomUUID(), leaseMs: 120_000, afterRoomId: '' },
    );
  measured.set('claim of an endpoint with an order', await cost(client, inOrder));
  await client.query(`UPDATE webhook_endpoints SET ordering = 'none'`);
  return measured;
}

/** The median cost of all statements that the function sends, and the plans of its last call. */
async function cost(client: pg.Client, ...statement: StatementParts): Promise<Measured> {
  const rounds: Measured[] = [];
  for (let round = 0; round < ROUNDS; round++) rounds.push(await measureOnce(client, ...statement));
  const plan = rounds.at(-1)!.plan;
  return { ms: median(rounds.map(({ ms }) => ms)), buffers: median(rounds.map(({ buffers }) => buffers)), plan };
}

async function measureOnce(client: pg.Client, ...[run, prepare]: StatementParts): Promise<Measured> {
  const total: Measured = { ms: 0, buffers: 0, plan: '' };
  const send = async (query: any, ...values: unknown[]) => {
    const { text, values: all } = query instanceof Prisma.Sql ? query : Prisma.sql(query, ...values);
    // The explained statement changes rows too, so it is undone before the statement runs for its result.
    await client.query('SAVEPOINT explained');
    const explained = await client.query(`EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) ${text}`, [
      ...all,
    ]);
    await client.query('ROLLBACK TO SAVEPOINT explained');
    const [{ Plan: plan, 'Execution Time': ms }] = explained.rows[0]['QUERY PLAN'];
    total.ms += ms;
    total.buffers += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
    total.plan += `${outline(plan, 0)}\n`;
    return sendOnly(query, ...values);
  };
  const typed = (through: typeof send) => ({
    $queryRaw: async (query: any, ...values: unknown[]) => (await through(query, ...values)).rows,
    $executeRaw: async (query: any, ...values: unknown[]) => (await through(query, ...values)).rowCount,
  });
  const sendOnly = (query: any, ...values: unknown[]) => {
    const { text, values: all } = query instanceof Prisma.Sql ? query : Prisma.sql(query, ...values);
    return client.query(text, [...all]);
  };
  await client.query('BEGIN');
  await run(typed(send), await prepare?.(typed(sendOnly)));
  await client.query('ROLLBACK');
  return total;
}

/** A line for each node of a plan: what it reads, by which index, rows and buffers. */
function outline(node: any, depth: number): string {
  const words = [
    node['Node Type'],
    node['Index Name'] ?? node['Relation Name'] ?? node['CTE Name'] ?? '',
    `rows ${node['Actual Rows']}`,
    `loops ${node['Actual Loops']}`,
    `buffers ${node['Shared Hit Blocks'] + node['Shared Read Blocks']}`,
  ];
  const line = `${'  '.repeat(depth)}${node['Subplan Name'] ? `${node['Subplan Name']}: ` : ''}${words.filter(Boolean).join(', ')}`;
  return [line, ...(node.Plans ?? []).map((child: any) => outline(child, depth + 1))].join('\n');
}
