import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { real } from '../globals.js';
import { LEASE_LOG } from './lease-log.js';

/** Until the first look for the lock that a statement waits for, and between two looks, in milliseconds. */
const LOOK_AFTER_MS = 5;
const LOOK_AGAIN_MS = 35;
/** Until a session that was ended has given its locks back, in milliseconds. */
const TERMINATE_WITHIN_MS = 60_000;
/** Shorter than two looks, so that PostgreSQL has found a deadlock before a statement counts as blocked. */
const SESSION = [
  '-c search_path=sim,public,pg_catalog',
  '-c deadlock_timeout=10ms',
  '-c plan_cache_mode=force_custom_plan',
  '-c jit=off',
  '-c sim.now=2000-01-01T00:00:00Z',
  '-c sim.seed=0',
  '-c sim.process=simulation',
  '-c sim.woken=false',
].join(' ');

const PREPARE = `
  CREATE SCHEMA sim;
  CREATE SEQUENCE sim.counter;
  CREATE FUNCTION sim.now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS $$SELECT current_setting('sim.now')::timestamptz$$;
  CREATE FUNCTION sim.transaction_timestamp() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS $$SELECT current_setting('sim.now')::timestamptz$$;
  CREATE FUNCTION sim.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS $$SELECT current_setting('sim.now')::timestamptz$$;
  CREATE FUNCTION sim.gen_random_uuid() RETURNS uuid LANGUAGE sql VOLATILE
    AS $$SELECT md5(current_setting('sim.seed') || nextval('sim.counter'))::uuid$$;
  CREATE FUNCTION sim.random() RETURNS float8 LANGUAGE sql VOLATILE
    AS $$SELECT ('x' || left(md5(current_setting('sim.seed') || nextval('sim.counter')), 8))::bit(32)::bigint / 2.0 ^ 32$$;
  CREATE VIEW sim.pg_stat_activity AS
    SELECT pid, datname, usename, application_name, state, state_change, backend_xid, backend_xmin, wait_event_type,
      CASE WHEN xact_start IS NOT NULL AND application_name LIKE '2%T%Z' THEN application_name::timestamptz END
        AS xact_start
    FROM pg_catalog.pg_stat_activity;
  DO $$
  DECLARE found record;
  BEGIN
    FOR found IN
      SELECT c.relname, a.attname FROM pg_attrdef d
      JOIN pg_class c ON c.oid = d.adrelid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.adnum
      WHERE c.relnamespace = 'public'::regnamespace
        AND pg_get_expr(d.adbin, d.adrelid) ~* 'now\\(|_timestamp'
    LOOP
      EXECUTE format('ALTER TABLE public.%I ALTER COLUMN %I SET DEFAULT sim.now()', found.relname, found.attname);
    END LOOP;
    FOR found IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' LOOP
      EXECUTE format('ALTER TABLE public.%I SET (autovacuum_enabled = false)', found.relname);
    END LOOP;
  END $$;`;

/** A connection that one simulated connection after another uses. */
export class Backend {
  readonly client: pg.Client;
  readonly kind: string;
  #time = '';
  #writer = '';

  constructor(url: string, kind: string) {
    this.kind = kind;
    // The last value of a setting counts.
    this.client = new pg.Client({ connectionString: url, options: `${kind} ${SESSION}` });
    this.client.on('error', () => undefined);
  }

  get pid(): number {
    return (this.client as unknown as { processID: number }).processID;
  }

  /**
   * The view of active sessions shows the time as the begin of the transaction.
   * @param writer the process that the log of leases names.
   * @param isWoken whether it was frozen until a moment ago.
   */
  async setTime(ms: number, seed: number, writer = 'simulation', isWoken = false): Promise<void> {
    const time = new real.Date(ms).toISOString();
    if (time === this.#time && writer === this.#writer) return;
    [this.#time, this.#writer] = [time, writer];
    await this.client.query({
      name: 'sim_time',
      text: `SELECT set_config('sim.now', $1, false), set_config('application_name', $1, false),
        set_config('sim.seed', $2, false), set_config('sim.process', $3, false),
        set_config('sim.woken', $4, false)`,
      values: [time, String(seed), writer, String(isWoken)],
    });
  }
}

export class Postgres {
  readonly #url: string;
  readonly #control: pg.Client;
  readonly #free: Backend[] = [];
  readonly #all = new Set<Backend>();
  /** Processor time of sessions that have ended, in seconds. */
  #endedSeconds = 0;

  private constructor(url: string, control: pg.Client) {
    this.#url = url;
    this.#control = control;
  }

  /** @param url a migrated database of the simulation's own. */
  static async open(url: string): Promise<Postgres> {
    const control = new pg.Client({ connectionString: url });
    await control.connect();
    const { rows } = await control.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'sim'`);
    if (rows.length === 0) await control.query(PREPARE + LEASE_LOG);
    return new Postgres(url, control);
  }

  async reset(): Promise<void> {
    const { rows } = await this.#control.query<{ name: string }>(`
      SELECT format('%I', relname) AS name FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> '_prisma_migrations' ORDER BY 1`);
    await this.#control.query(`TRUNCATE ${rows.map(({ name }) => name).join(', ')} RESTART IDENTITY CASCADE`);
    await this.#control.query(
      `TRUNCATE sim.leases, sim.breaks, sim.failed_attempts; ALTER SEQUENCE sim.counter RESTART`,
    );
  }

  async query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.#control.query<Row>(text, values)).rows;
  }

  async acquire(kind: string): Promise<Backend> {
    const at = this.#free.findIndex((backend) => backend.kind === kind);
    const [free] = at === -1 ? [] : this.#free.splice(at, 1);
    if (free !== undefined) return free;
    const backend = new Backend(this.#url, kind);
    this.#all.add(backend);
    await backend.client.connect();
    return backend;
  }

  release(backend: Backend): void {
    this.#free.push(backend);
  }

  /** Ends a session with its locks, as the death of its client does while a statement runs. */
  async terminate(backend: Backend): Promise<void> {
    this.#all.delete(backend);
    this.#endedSeconds += await processorSeconds(backend.pid);
    await this.#control.query('SELECT pg_terminate_backend($1, $2)', [backend.pid, TERMINATE_WITHIN_MS]);
    await backend.client.end().catch(() => undefined);
  }

  async cancel(backend: Backend): Promise<void> {
    await this.#control.query('SELECT pg_cancel_backend($1)', [backend.pid]);
  }

  /** Resolves once the statement has its answer (true), or waits for a lock of another session (false). */
  async answered(backend: Backend, answer: Promise<unknown>): Promise<boolean> {
    const state = { isDone: false };
    const end = (): void => void (state.isDone = true);
    const done = answer.then(end, end);
    let waits = 0;
    for (let pauseMs = LOOK_AFTER_MS; ; pauseMs = LOOK_AGAIN_MS) {
      await within(done, pauseMs);
      if (state.isDone) return true;
      const [row] = await this.query<{ blocked: boolean }>('SELECT cardinality(pg_blocking_pids($1)) > 0 AS blocked', [
        backend.pid,
      ]);
      waits = row?.blocked === true ? waits + 1 : 0;
      if (waits === 2) return false;
    }
  }

  /** Processor time of all sessions so far, where PostgreSQL runs on this machine and it is Linux; otherwise 0. */
  async processorSeconds(): Promise<number> {
    const control = this.#control as unknown as { processID: number };
    const pids = [control.processID, ...[...this.#all].map(({ pid }) => pid)];
    const each = await Promise.all(pids.map((pid) => processorSeconds(pid)));
    return each.reduce((sum, one) => sum + one, this.#endedSeconds);
  }

  async close(): Promise<void> {
    for (const { client } of this.#all) await client.end().catch(() => undefined);
    await this.#control.end();
  }
}

/** A hundredth of a second is the unit of /proc on Linux. */
const TICKS_PER_SECOND = 100;

async function processorSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // After the name, which may hold spaces, in parentheses.
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return ((user ?? 0) + (system ?? 0)) / TICKS_PER_SECOND;
}

function within(promise: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = real.setTimeout(resolve, ms);
    void promise.then(() => {
      real.clearTimeout(timer as unknown as number);
      resolve();
    });
  });
}
