import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { createTestDatabase } from '../test-database.js';
import { readCallSites, type DeclaredColumn } from './call-sites.js';
import { Describer, type DescribedColumn } from './describe.js';
import { insertedColumns, updatedColumns } from './written-columns.js';

interface Recorded {
  text: string;
  parts: readonly string[];
  /** Columns in which a null has appeared. */
  nulls: Set<string>;
}

/**
 * Compares every statement that the tests have run with its declared rows: PostgreSQL's own description of names, types
 * and nullability. Then looks for columns of the tables that no statement writes.
 * @param folder with the records of jest/record-statements.mjs.
 * @throws Error that lists the differences, each with its file and line.
 */
export async function checkStatements(folder: string): Promise<void> {
  const recorded = readRecords(folder);
  const { sites, problems } = readCallSites();
  const { url } = await createTestDatabase();
  const describer = await Describer.open(url);
  for (const site of sites) {
    const found = [...recorded.values()].filter((one) => keyOf(one) === keyOf(site));
    if (found.length === 0) problems.push(`${site.place}: no test runs this statement`);
    const { columns } = site;
    if (columns === null) continue;
    const differences = new Set<string>();
    for (const { text, nulls } of found) {
      try {
        for (const difference of compare(columns, await describer.describe(text), nulls)) differences.add(difference);
      } catch (error) {
        differences.add(`PostgreSQL cannot describe it: ${(error as Error).message}`);
      }
    }
    problems.push(...[...differences].map((difference) => `${site.place}: ${difference}`));
  }
  await describer.close();
  problems.push(...(await unwritten(url, [...recorded.values()])));
  if (problems.length > 0) throw new Error(`statements and their types differ:\n${problems.sort().join('\n')}\n`);
}

const keyOf = ({ parts }: { parts: readonly string[] }): string => parts.join('\0');

function readRecords(folder: string): Map<string, Recorded> {
  const recorded = new Map<string, Recorded>();
  for (const file of readdirSync(folder)) {
    for (const line of readFileSync(join(folder, file), 'utf8').split('\n').filter(Boolean)) {
      const [text, parts, name] = JSON.parse(line) as [string, string[], string | null];
      const key = [text, ...parts].join('\0');
      const one = recorded.get(key) ?? { text, parts, nulls: new Set() };
      if (name !== null) one.nulls.add(name);
      recorded.set(key, one);
    }
  }
  return recorded;
}

function* compare(
  columns: readonly DeclaredColumn[],
  described: readonly DescribedColumn[],
  nulls: ReadonlySet<string>,
): Generator<string> {
  for (const declared of columns) {
    const column = described.find(({ name }) => name === declared.name);
    if (column === undefined && !declared.optional) yield `no column "${declared.name}", which the type declares`;
    if (column !== undefined) yield* compareColumn(declared, column, nulls.has(declared.name));
  }
  for (const { name } of described) {
    if (!columns.some((declared) => declared.name === name)) yield `the type lacks the column "${name}"`;
  }
}

function* compareColumn(declared: DeclaredColumn, column: DescribedColumn, wasNull: boolean): Generator<string> {
  const { name, kind, nullable } = declared;
  const fits = kind === column.kind || kind === 'any' || (column.kind === 'object' && kind !== 'Date');
  if (!fits) yield `"${name}" is a ${column.kind}, and declared as ${kind}`;
  if (nullable) return;
  if (wasNull) yield `"${name}" was null, and is not declared so`;
  else if (column.nullable === true && !(name in NEVER_NULL)) yield `"${name}" may be null, and is not declared so`;
}

/** Columns that may be null in their table, and never are in a result, with the reason. */
const NEVER_NULL: Record<string, string> = {
  endSeenAt: 'the statement sets it',
  failingSince: 'the condition of the statement compares it with a time',
  input: 'the operations of the statement have one',
  resumeSecretHash: 'the sessions of the statement are live',
  url: 'the media servers of the statement have one',
};

/** Columns that PostgreSQL fills itself, with the reason. */
const FILLED: Record<string, string> = {
  'events.transaction_id': 'the transaction that writes the event, which only PostgreSQL knows',
  'recording_spans.ended_at': 'the trigger of `session_tracks`',
  'recording_spans.id': 'its sequence',
  'signaling_instances.started_at': 'the time of the first heartbeat',
  'usage_rollups.rolled_up_at': 'the time of the roll-up',
};

/** Columns that no INSERT writes, because their values come later. Times and leases are not listed. */
const LATER: Record<string, string> = {
  'media_nodes.version': 'a worker observes it',
  'participant_sessions.end_reason': 'the end of the session',
  'participant_sessions.media': 'the gateway writes it once media flows',
  'participant_sessions.media_node_id': 'the gateway writes it once media flows',
  'recordings.last_error': 'the processing fails',
  'rooms.media_node_id': 'the first join places the room',
  'runtime_operations.last_error': 'an attempt fails',
  'webhook_deliveries.failure_reason': 'the last attempt fails',
  'webhook_deliveries.secret_version': 'the first attempt pins it',
  'webhook_deliveries.url': 'the first attempt pins it',
  'webhook_endpoints.disabled_reason': 'a worker or an operator disables the endpoint',
  'webhook_endpoints.next_signing_key_version': 'a rotation begins',
  'webhook_endpoints.slot_ms': 'the first attempt has taken its time',
  'webhook_recoveries.position': 'the first step of the recovery',
};
const COMES_LATER = /_(at|since|until)$|\.lease_/;

/** The columns that no statement writes, and columns that stay null in each new row, because no INSERT writes them. */
async function unwritten(url: string, recorded: readonly Recorded[]): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ key: string; empty: boolean }>(`
    SELECT c.relname || '.' || a.attname AS key, NOT a.attnotnull AND NOT a.atthasdef AS empty
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
      AND c.relname <> '_prisma_migrations'`);
  await client.end();
  const texts = recorded.map(({ text }) => text);
  const inserted = new Set(texts.flatMap(insertedColumns));
  const written = new Set([...inserted, ...texts.flatMap(updatedColumns)]);
  return rows.flatMap(({ key, empty }) => {
    if (!written.has(key) && !(key in FILLED)) return [`${key}: no statement writes this column`];
    const isForgotten = empty && !inserted.has(key) && !(key in LATER) && !COMES_LATER.test(key);
    return isForgotten ? [`${key}: no INSERT writes this column`] : [];
  });
}
