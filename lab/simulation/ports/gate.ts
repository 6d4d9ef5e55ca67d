import { EventEmitter } from 'node:events';
import type { QueryResult } from 'pg';
import { hashOf } from '../../src/random.js';
import type { SimProcess } from '../processes.js';
import type { World } from '../world.js';
import { FENCE_BREAK, isFence } from './lease-log.js';
import type { Backend, Postgres } from './postgres.js';

/** As of the product's settings (packages/db/src/client/database.ts), in milliseconds. */
const STATEMENT_TIMEOUT_MS = 10_000;
const IDLE_IN_TRANSACTION_MS = 15_000;
/** For so long after a freeze, a worker may continue a turn that it has lost, in milliseconds. */
const WOKEN_MS = 30_000;

export interface Query {
  name?: string;
  text: string;
  values?: unknown[];
}

/** A statement on its way. */
interface Statement {
  readonly client: SimClient;
  readonly query: Query;
  readonly label: string;
  resolve(result: QueryResult): void;
  reject(error: unknown): void;
  sentAtMs: number;
  answer: Promise<QueryResult>;
}

export class SimClient extends EventEmitter {
  readonly process: SimProcess;
  readonly #gate: Gate;
  readonly #onRelease: (client: SimClient, isLost: boolean) => void;
  readonly kind: string;
  backend: Backend | null = null;
  isInTransaction = false;
  isLost = false;
  lastAnswerMs = 0;
  lastLabel = '';

  constructor(gate: Gate, process: SimProcess, kind: string, onRelease: (client: SimClient, isLost: boolean) => void) {
    super();
    this.#gate = gate;
    this.process = process;
    this.kind = kind;
    this.#onRelease = onRelease;
  }

  query(query: Query | string, values?: unknown[]): Promise<QueryResult> {
    const given = typeof query === 'string' ? { text: query, ...(values === undefined ? {} : { values }) } : query;
    return this.#gate.submit(this, given);
  }

  release(error?: Error | boolean): void {
    const isLost = this.isLost || (error !== undefined && error !== false);
    if (isLost) this.#gate.close(this);
    this.#onRelease(this, isLost);
  }
}

/** A statement that was answered without an error. */
export interface Answer {
  readonly label: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A statement that changed something. */
export interface Effect {
  readonly label: string;
  readonly text: string;
  readonly isCommitted: boolean;
}

/** Called after each statement that changed something. It may end the process. */
type OnEffect = (process: SimProcess, effect: Effect) => Promise<void>;

/** Every statement of every simulated process waits here for its turn. PostgreSQL runs one at a time. */
export class Gate {
  readonly #blocked = new Set<Statement>();
  readonly #clients = new Set<SimClient>();
  onEffect: OnEffect = () => Promise.resolve();
  /** Called after each statement that was answered without an error. It may freeze the process. */
  onAnswer: (process: SimProcess, answer: Answer) => void = () => undefined;
  statements = 0;

  constructor(
    private readonly world: World,
    private readonly postgres: Postgres,
    private readonly seed: number,
  ) {
    world.onTime.push(() => this.#expire());
  }

  open(process: SimProcess, kind: string, onRelease: (client: SimClient, isLost: boolean) => void): SimClient {
    const client = new SimClient(this, process, kind, onRelease);
    this.#clients.add(client);
    return client;
  }

  submit(client: SimClient, query: Query): Promise<QueryResult> {
    const { process } = client;
    const label = labelOf(query.text, client.lastLabel);
    return new Promise((resolve, reject) => {
      if (!process.isAlive) return;
      const statement = { client, query, label, resolve, reject, sentAtMs: 0 } as unknown as Statement;
      const run = (): Promise<void> => this.#send(statement);
      this.world.add({ atMs: this.world.nowMsValue, process, label: `sends ${label}`, run });
    });
  }

  async #send(statement: Statement): Promise<void> {
    const { client, query, label } = statement;
    if (client.isLost) {
      statement.reject(new Error('Client has encountered a connection error and is not queryable'));
      return;
    }
    const backend = (client.backend ??= await this.postgres.acquire(client.kind));
    if (!client.isInTransaction) {
      const { nowMsValue: nowMs } = this.world;
      const { name, frozenUntilMs } = client.process;
      await backend.setTime(nowMs, this.seed, name, nowMs - frozenUntilMs < WOKEN_MS);
    }
    this.statements += 1;
    client.lastLabel = label;
    statement.sentAtMs = this.world.nowMsValue;
    statement.answer = backend.client.query(query);
    statement.answer.catch(() => undefined);
    if (await this.postgres.answered(backend, statement.answer)) return this.#answered(statement);
    this.world.note(`${client.process.name}: ${label} waits for a lock`);
    this.#blocked.add(statement);
  }

  async #answered(statement: Statement): Promise<void> {
    const { client, label, query } = statement;
    const { process } = client;
    const outcome = await statement.answer.then(
      (result) => ({ result, error: null }),
      (error: unknown) => ({ result: null, error }),
    );
    const verb = /^\s*(\w+)/.exec(query.text)?.[1]?.toUpperCase() ?? '';
    if (verb === 'BEGIN') client.isInTransaction = outcome.error === null;
    if (verb === 'COMMIT' || verb === 'ROLLBACK') client.isInTransaction = false;
    client.lastAnswerMs = this.world.nowMsValue;
    if (outcome.error === null) {
      const { rowCount } = outcome.result as QueryResult;
      this.world.note(`${process.name}: ${label} has ${rowCount ?? 0} rows`);
      if (isFence(query.text) && rowCount !== 0)
        await client.backend?.client.query(FENCE_BREAK, query.values?.slice(0, 1));
      // A statement of the next step finds its locks free.
      if (!client.isInTransaction) await this.#lookAgain();
      this.onAnswer(process, { label, text: query.text, values: query.values ?? [] });
      const isWrite = verb === 'COMMIT' || ((rowCount ?? 0) > 0 && /\b(INSERT|UPDATE|DELETE)\b/.test(query.text));
      if (isWrite) {
        process.effects += 1;
        await this.onEffect(process, { label, text: query.text, isCommitted: !client.isInTransaction });
      }
    } else {
      this.world.note(`${process.name}: ${label} fails: ${(outcome.error as Error).message}`);
      if (!client.isInTransaction) await this.#lookAgain();
    }
    if (!process.isAlive) return;
    const run = (): void => {
      if (outcome.error === null) statement.resolve(outcome.result as QueryResult);
      else statement.reject(outcome.error);
    };
    this.world.add({ atMs: this.world.nowMsValue, process, label: `gets ${label}`, run });
  }

  /** Looks whether statements have got the locks that they waited for. */
  async #lookAgain(): Promise<void> {
    for (const statement of [...this.#blocked]) {
      const backend = statement.client.backend as Backend;
      if (!this.#blocked.has(statement) || !(await this.postgres.answered(backend, statement.answer))) continue;
      this.#blocked.delete(statement);
      await this.#answered(statement);
    }
  }

  /** Rolls back the transactions of a process that died. */
  async abandon(process: SimProcess): Promise<void> {
    for (const client of [...this.#clients]) if (client.process === process) await this.#end(client);
    await this.#lookAgain();
  }

  /** Closes a connection of a process that continues. */
  close(client: SimClient): void {
    client.isLost = true;
    this.world.after(0, null, `PostgreSQL loses a connection of ${client.process.name}`, async () => {
      await this.#end(client);
      await this.#lookAgain();
    });
  }

  async #end(client: SimClient): Promise<void> {
    this.#clients.delete(client);
    const { backend } = client;
    if (backend === null) return;
    client.backend = null;
    const waiting = [...this.#blocked].find((statement) => statement.client === client);
    if (waiting !== undefined) {
      this.#blocked.delete(waiting);
      await this.postgres.terminate(backend);
      return;
    }
    if (client.isInTransaction) await backend.client.query('ROLLBACK');
    client.isInTransaction = false;
    this.postgres.release(backend);
  }

  /** Ends transactions and statements that PostgreSQL would end by now. */
  async #expire(): Promise<void> {
    const now = this.world.nowMsValue;
    for (const statement of [...this.#blocked]) {
      if (now - statement.sentAtMs < STATEMENT_TIMEOUT_MS || !this.#blocked.delete(statement)) continue;
      await this.postgres.cancel(statement.client.backend as Backend);
      await statement.answer.catch((error: unknown) => {
        if (error instanceof Error)
          error.message = error.message.replace('due to user request', 'due to statement timeout');
      });
      await this.#answered(statement);
    }
    for (const client of this.#clients) {
      const { backend, isInTransaction, lastAnswerMs } = client;
      if (backend === null || !isInTransaction || now - lastAnswerMs < IDLE_IN_TRANSACTION_MS) continue;
      if ([...this.#blocked].some((statement) => statement.client === client)) continue;
      this.world.note(`${client.process.name}: PostgreSQL ends its idle transaction`);
      await backend.client.query('ROLLBACK');
      this.postgres.release(backend);
      Object.assign(client, { backend: null, isInTransaction: false, isLost: true });
      await this.#lookAgain();
    }
  }
}

const known = new Map<string, string>();
const WRITES = /\b(INSERT INTO|UPDATE|DELETE FROM)\s+(?!SET\b|OF\b|SKIP\b)"?(?:public"?\."?)?(\w+)/g;
const READS = /\b(FROM|JOIN)\s+"?(?:public"?\."?)?(\w+)/g;

/** Names a statement: its verbs, its tables, and a few characters that tell similar ones apart. */
function labelOf(text: string, before: string): string {
  const short = text.trim();
  if (/^(COMMIT|ROLLBACK)/i.test(short)) return `${short} after ${before}`;
  let label = known.get(text);
  if (label === undefined) {
    const writes = [...text.matchAll(WRITES)].map(([, verb, table]) => `${verb} ${table}`);
    const [read] = text.matchAll(READS);
    const parts = writes.length > 0 ? [...new Set(writes)].slice(0, 3) : [`SELECT ${read?.[2] ?? ''}`];
    const mark = (hashOf(text) >>> 0).toString(36).slice(0, 4);
    label = /^\w+$/.test(short) ? short : `${parts.join(', ')} #${mark}`;
    known.set(text, label);
  }
  return label;
}
